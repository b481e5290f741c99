//! The id of a user of Kerberos: the name that rules give to its principal (`KerberosName`).

use regex::Regex;

/// How principals become ids.
#[derive(Debug, Clone, Default)]
pub(crate) struct PrincipalNames {
    rules: Vec<Rule>,
    default_realm: Option<String>,
    /// `kerberos.removeHostFromPrincipal`
    removes_host: bool,
    /// `kerberos.removeRealmFromPrincipal`
    removes_realm: bool,
}

/// A rule that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "security.auth_to_local: this is no rule: {0}; a rule is DEFAULT or RULE:[n:format](expression)s/from/to/"
)]
pub(crate) struct RuleError(String);

#[derive(Debug, Clone)]
enum Rule {
    /// The first part of principals of the default realm.
    Default,
    Format(Box<FormatRule>),
}

/// `RULE:[parts:format](expression)s/from/to/g`
#[derive(Debug, Clone)]
struct FormatRule {
    parts: usize,
    format: String,
    expression: Option<Regex>,
    replaced: Option<Replaced>,
}

#[derive(Debug, Clone)]
struct Replaced {
    from: Regex,
    to: String,
    everywhere: bool,
}

/// The parts of a principal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Principal<'a> {
    pub(crate) service: &'a str,
    pub(crate) host: Option<&'a str>,
    pub(crate) realm: &'a str,
}

impl<'a> Principal<'a> {
    /// `service@REALM` or `service/host@REALM`; other texts are no principals here.
    pub(crate) fn parse(text: &'a str) -> Option<Principal<'a>> {
        if text.contains('\\') {
            return None;
        }
        let (name, realm) = text.split_once('@').filter(|(_, realm)| !realm.contains(['/', '@']))?;
        match name.split_once('/') {
            None => Some(Principal { service: name, host: None, realm }),
            Some((service, host)) if !host.contains('/') => {
                Some(Principal { service, host: Some(host), realm })
            }
            Some(_) => None,
        }
    }

    /// `$0` is the realm, as in rules.
    fn part(&self, number: usize) -> Option<&'a str> {
        match number {
            0 => Some(self.realm),
            1 => Some(self.service),
            2 => self.host,
            _ => None,
        }
    }

    fn parts(&self) -> usize {
        1 + usize::from(self.host.is_some())
    }
}

impl PrincipalNames {
    /// `rules` is the text of `security.auth_to_local`.
    ///
    /// # Errors
    /// If a rule cannot be read.
    pub(crate) fn new(
        rules: &str,
        default_realm: Option<String>,
        (removes_host, removes_realm): (bool, bool),
    ) -> Result<PrincipalNames, RuleError> {
        Ok(PrincipalNames { rules: rules_of(rules)?, default_realm, removes_host, removes_realm })
    }

    /// The id of a principal that Kerberos has proven. If no rule applies, or a rule gives no simple name, it is the
    /// principal itself, as upstream.
    pub(crate) fn id(&self, principal: &str) -> String {
        let Some(parsed) = Principal::parse(principal) else { return principal.to_owned() };
        let name = self.rules.iter().find_map(|rule| rule.apply(&parsed, self.default_realm.as_deref()));
        let Some(mut id) = name.filter(|name| !name.contains(['/', '@'])) else {
            tracing::warn!(
                ?principal,
                "no rule of security.auth_to_local gives this principal a simple name"
            );
            return principal.to_owned();
        };
        if let Some(host) = parsed.host.filter(|_| !self.removes_host) {
            id = format!("{id}/{host}");
        }
        match self.removes_realm {
            true => id,
            false => format!("{id}@{}", parsed.realm),
        }
    }

    /// Whether a client that has proven its principal asks for no identity but its own. The identity is never used:
    /// [`id`](PrincipalNames::id) is. Clients write it as the principal, as its first part or as the id.
    pub(crate) fn is_own(&self, principal: &str, wanted: &str) -> bool {
        let first = principal.split(['/', '@']).next().unwrap_or_default();
        wanted.is_empty() || wanted == principal || wanted == first || wanted == self.id(principal)
    }
}

impl Rule {
    fn apply(&self, principal: &Principal<'_>, default_realm: Option<&str>) -> Option<String> {
        match self {
            Rule::Default => (default_realm == Some(principal.realm)).then(|| principal.service.to_owned()),
            Rule::Format(rule) => rule.apply(principal),
        }
    }
}

impl FormatRule {
    fn apply(&self, principal: &Principal<'_>) -> Option<String> {
        if self.parts != principal.parts() {
            return None;
        }
        let name = fill(&self.format, principal)?;
        if self.expression.as_ref().is_some_and(|expression| !expression.is_match(&name)) {
            return None;
        }
        Some(match &self.replaced {
            None => name,
            Some(Replaced { from, to, everywhere: true }) => from.replace_all(&name, to).into_owned(),
            Some(Replaced { from, to, everywhere: false }) => from.replace(&name, to).into_owned(),
        })
    }
}

/// Puts the parts of a principal in place of `$0`, `$1` and `$2`. A part that is not there spoils the rule.
fn fill(format: &str, principal: &Principal<'_>) -> Option<String> {
    let mut pieces = format.split('$');
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let digits = piece.find(|c: char| !c.is_ascii_digit()).unwrap_or(piece.len());
        filled.push_str(principal.part(piece[..digits].parse().ok()?)?);
        filled.push_str(&piece[digits..]);
    }
    Some(filled)
}

fn rules_of(text: &str) -> Result<Vec<Rule>, RuleError> {
    let mut rules = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (rule, after) = rule_of(rest).ok_or_else(|| RuleError(rest.to_owned()))?;
        rules.push(rule);
        rest = after.trim_start();
    }
    if rules.is_empty() {
        rules.push(Rule::Default);
    }
    Ok(rules)
}

/// The first rule of a text, and what follows.
fn rule_of(text: &str) -> Option<(Rule, &str)> {
    if let Some(rest) = text.strip_prefix("DEFAULT") {
        return Some((Rule::Default, rest));
    }
    let (parts, rest) = text.strip_prefix("RULE:[")?.split_once(':')?;
    let (format, mut rest) = rest.split_once(']')?;
    let mut expression = None;
    if let Some(begun) = rest.strip_prefix('(') {
        let (inner, after) = begun.split_once(')')?;
        // Java compares the whole name.
        (expression, rest) = (Some(Regex::new(&format!("^(?:{inner})$")).ok()?), after);
    }
    let mut replaced = None;
    if let Some(begun) = rest.strip_prefix("s/") {
        let (from, after) = begun.split_once('/')?;
        let (to, after) = after.split_once('/')?;
        let everywhere = after.starts_with('g');
        replaced = Some(Replaced { from: Regex::new(from).ok()?, to: replacement(to), everywhere });
        rest = after.strip_prefix('g').unwrap_or(after);
    }
    let rule = FormatRule { parts: parts.parse().ok()?, format: format.to_owned(), expression, replaced };
    Some((Rule::Format(Box::new(rule)), rest))
}

/// A replacement of Java as one of `regex`: `$1` ends after its digits, and `\` makes the next character plain.
fn replacement(java: &str) -> String {
    let mut out = String::new();
    let mut chars = java.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('$') => out.push_str("$$"),
                Some(plain) => out.push(plain),
                None => {}
            },
            '$' => {
                out.push_str("${");
                while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                    out.push(digit);
                }
                out.push('}');
            }
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(rules: &str, removed: (bool, bool)) -> PrincipalNames {
        PrincipalNames::new(rules, Some("R.ORG".into()), removed).unwrap()
    }

    #[test]
    fn principals_of_the_default_realm_are_their_own_ids() {
        let whole = names("", (false, false));
        assert_eq!(whole.id("client@R.ORG"), "client@R.ORG");
        assert_eq!(whole.id("zk/h.x@R.ORG"), "zk/h.x@R.ORG");
        assert_eq!(names("DEFAULT", (false, true)).id("client@R.ORG"), "client");
        assert_eq!(names("DEFAULT", (true, false)).id("zk/h.x@R.ORG"), "zk@R.ORG");
        assert_eq!(names("DEFAULT", (true, true)).id("zk/h.x@R.ORG"), "zk");
    }

    #[test]
    fn a_principal_without_a_rule_keeps_its_name_and_gets_no_shorter_one() {
        let short = names("DEFAULT", (true, true));
        assert_eq!(short.id("client@OTHER.ORG"), "client@OTHER.ORG");
        assert_eq!(short.id("a/b/c@R.ORG"), "a/b/c@R.ORG");
        assert_eq!(names("RULE:[1:$1@$0]", (true, true)).id("a@R.ORG"), "a@R.ORG", "not a simple name");
    }

    #[test]
    fn a_client_may_ask_for_its_own_identity_only() {
        let names = names("DEFAULT", (true, true));
        for own in ["", "zk/h@R.ORG", "zk"] {
            assert!(names.is_own("zk/h@R.ORG", own), "{own}");
        }
        for other in ["root", "zk/h", "zk/h@OTHER.ORG", "super"] {
            assert!(!names.is_own("zk/h@R.ORG", other), "{other}");
        }
    }

    #[test]
    fn rules_choose_by_parts_and_expression_and_replace() {
        let rules = "RULE:[2:$1;$2](zk;.*)s/;.*// RULE:[1:$1@$0](.*@OTHER\\.ORG)s/@.*/-other/ DEFAULT";
        let chosen = names(rules, (true, true));
        assert_eq!(chosen.id("zk/host@ANY.ORG"), "zk");
        assert_eq!(chosen.id("bob@OTHER.ORG"), "bob-other");
        assert_eq!(chosen.id("bob@R.ORG"), "bob");
        assert_eq!(chosen.id("bob@THIRD.ORG"), "bob@THIRD.ORG");
    }

    #[test]
    fn replacements_are_those_of_java() {
        let first = names("RULE:[1:$1]s/a/X/", (true, true));
        assert_eq!(first.id("banana@R"), "bXnana");
        let all = names("RULE:[1:$1]s/a/X/g", (true, true));
        assert_eq!(all.id("banana@R"), "bXnXnX");
        let groups = names(r"RULE:[1:$1]s/(b)(a)/$2$1_\$/", (true, true));
        assert_eq!(groups.id("banana@R"), "ab_$nana");
    }

    #[test]
    fn texts_that_are_no_rules_are_refused() {
        for rules in ["RULE", "RULE:[x:$1]", "RULE:[1:$1](()", "DEFAULT nonsense", "RULE:[1:$1]s/a/"] {
            assert!(PrincipalNames::new(rules, None, (false, false)).is_err(), "{rules}");
        }
    }
}
