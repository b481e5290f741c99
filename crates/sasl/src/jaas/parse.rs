//! The grammar of JAAS files, and the tokens of Java's `StreamTokenizer`.

use super::{Flag, JaasError, JaasFile, LoginModule, Section};
use alloc::{string::String, vec::Vec};
use core::{iter::Peekable, str::Chars};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A bare word, which begins with a letter, `_` or `$`.
    Word(String),
    /// A text in quotation marks.
    Text(String),
    /// Any other character, or a number: Java knows no meaning for most.
    Mark(char),
}

struct Tokens<'a> {
    chars: Peekable<Chars<'a>>,
    line: usize,
    peeked: Option<Token>,
}

fn begins_word(c: char) -> bool {
    c.is_alphabetic() || c == '_' || c == '$'
}

fn is_in_word(c: char) -> bool {
    begins_word(c) || c.is_ascii_digit() || c == '-' || c == '.'
}

impl Tokens<'_> {
    fn next(&mut self) -> Result<Option<Token>, JaasError> {
        if let Some(peeked) = self.peeked.take() {
            return Ok(Some(peeked));
        }
        self.skip_blanks()?;
        let Some(first) = self.chars.next() else { return Ok(None) };
        Ok(Some(match first {
            '"' => Token::Text(self.quoted()?),
            c if begins_word(c) => {
                let mut word = String::from(c);
                while let Some(c) = self.chars.next_if(|c| is_in_word(*c)) {
                    word.push(c);
                }
                Token::Word(word)
            }
            c => Token::Mark(c),
        }))
    }

    fn peek(&mut self) -> Result<Option<&Token>, JaasError> {
        if self.peeked.is_none() {
            self.peeked = self.next()?;
        }
        Ok(self.peeked.as_ref())
    }

    /// Skips white space and comments.
    fn skip_blanks(&mut self) -> Result<(), JaasError> {
        while let Some(&c) = self.chars.peek() {
            if c == '\n' {
                self.line += 1;
            } else if c == '/' {
                let mut ahead = self.chars.clone();
                ahead.next();
                match ahead.next() {
                    Some('/') => {
                        while self.chars.next_if(|c| *c != '\n').is_some() {}
                        continue;
                    }
                    Some('*') => {
                        self.skip_long_comment();
                        continue;
                    }
                    _ => return Ok(()),
                }
            } else if !c.is_whitespace() && !c.is_control() {
                return Ok(());
            }
            self.chars.next();
        }
        Ok(())
    }

    fn skip_long_comment(&mut self) {
        self.chars.next();
        self.chars.next();
        let mut before = ' ';
        for c in self.chars.by_ref() {
            if before == '*' && c == '/' {
                return;
            }
            self.line += usize::from(c == '\n');
            before = c;
        }
    }

    /// The text up to the closing mark.
    fn quoted(&mut self) -> Result<String, JaasError> {
        let open = JaasError::OpenText { line: self.line };
        let mut text = String::new();
        loop {
            match self.chars.next() {
                Some('"') => return Ok(text),
                None | Some('\n' | '\r') => return Err(open),
                Some('\\') => text.push(self.escaped().ok_or_else(|| open.clone())?),
                Some(c) => text.push(c),
            }
        }
    }

    /// The character behind a backslash, as in Java's `StreamTokenizer`.
    fn escaped(&mut self) -> Option<char> {
        Some(match self.chars.next()? {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\n' | '\r' => return None,
            digit @ '0'..='7' => {
                // Three digits at most, and two behind a first one above 3.
                let mut code = digit as u32 - '0' as u32;
                for _ in 0..if digit <= '3' { 2 } else { 1 } {
                    match self.chars.next_if(|c| ('0'..='7').contains(c)) {
                        Some(next) => code = code * 8 + (next as u32 - '0' as u32),
                        None => break,
                    }
                }
                char::from_u32(code)?
            }
            other => other,
        })
    }

    fn expected(&self, expected: &'static str, found: Option<&Token>) -> JaasError {
        match found {
            Some(_) => JaasError::Expected { line: self.line, expected },
            None => JaasError::Ends { expected },
        }
    }

    fn name(&mut self, expected: &'static str) -> Result<String, JaasError> {
        match self.next()? {
            Some(Token::Word(name) | Token::Text(name)) => Ok(name),
            other => Err(self.expected(expected, other.as_ref())),
        }
    }

    fn mark(&mut self, mark: char, expected: &'static str) -> Result<(), JaasError> {
        match self.next()? {
            Some(Token::Mark(found)) if found == mark => Ok(()),
            other => Err(self.expected(expected, other.as_ref())),
        }
    }

    fn peek_mark(&mut self, mark: char) -> Result<bool, JaasError> {
        Ok(self.peek()? == Some(&Token::Mark(mark)))
    }
}

pub(super) fn file(text: &str, property: &dyn Fn(&str) -> Option<String>) -> Result<JaasFile, JaasError> {
    let mut tokens = Tokens { chars: text.chars().peekable(), line: 1, peeked: None };
    let mut file = JaasFile::default();
    while tokens.peek()?.is_some() {
        let name = tokens.name("the name of a section")?;
        if file.section(&name).is_some() {
            return Err(JaasError::Twice { line: tokens.line, name });
        }
        tokens.mark('{', "{")?;
        let mut modules = Vec::new();
        while !tokens.peek_mark('}')? {
            modules.push(module(&mut tokens, property)?);
        }
        tokens.mark('}', "}")?;
        tokens.mark(';', "; behind }")?;
        file.sections.push(Section { name, modules });
    }
    Ok(file)
}

fn module(
    tokens: &mut Tokens<'_>,
    property: &dyn Fn(&str) -> Option<String>,
) -> Result<LoginModule, JaasError> {
    let class = tokens.name("the class of a login module")?;
    let flag = tokens.name("required, requisite, sufficient or optional")?;
    let flag = match &*flag.to_ascii_lowercase() {
        "required" => Flag::Required,
        "requisite" => Flag::Requisite,
        "sufficient" => Flag::Sufficient,
        "optional" => Flag::Optional,
        _ => {
            let expected = "required, requisite, sufficient or optional";
            return Err(JaasError::Expected { line: tokens.line, expected });
        }
    };
    let mut options: Vec<(String, String)> = Vec::new();
    while !tokens.peek_mark(';')? {
        let name = tokens.name("the name of an option, or ; behind the last one")?;
        tokens.mark('=', "= behind the name of an option")?;
        let value = tokens.name("a value, in quotation marks if it is no word")?;
        let value = expand(&value, tokens.line, property)?;
        options.retain(|(of, _)| *of != name);
        options.push((name, value));
    }
    tokens.mark(';', "; behind the last option")?;
    Ok(LoginModule { class, flag, options })
}

/// Replaces `${name}` by the system property, and `${/}` by the separator of paths.
fn expand(value: &str, line: usize, property: &dyn Fn(&str) -> Option<String>) -> Result<String, JaasError> {
    let (mut expanded, mut rest) = (String::new(), value);
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, after)) = after.split_once('}') else { break };
        expanded.push_str(before);
        match name {
            "/" => expanded.push('/'),
            name => match property(name) {
                Some(text) => expanded.push_str(&text),
                None => return Err(JaasError::UnknownProperty { line, name: name.into() }),
            },
        }
        rest = after;
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, string::ToString, vec};

    fn parsed(text: &str) -> Result<JaasFile, JaasError> {
        JaasFile::parse(text, &|name| (name == "user.name").then(|| "root".into()))
    }

    /// The options of the only module.
    fn options(text: &str) -> Result<Vec<(String, String)>, JaasError> {
        let file = parsed(&format!("Server {{ a.B required {text}; }};"))?;
        Ok(file.sections[0].modules[0].options.clone())
    }

    fn pair(name: &str, value: &str) -> Vec<(String, String)> {
        vec![(name.into(), value.into())]
    }

    #[test]
    fn sections_have_modules_with_options() {
        let file = parsed(
            "// users\nServer {\n  org.apache.zookeeper.server.auth.DigestLoginModule required\n  user_super=\"x\"\n  \
             user_bob=\"y\";\n  other.Module OPTIONAL;\n};\n/* more\n */ \"Client 2\" { a.B sufficient k = v; };",
        )
        .unwrap();
        let names: Vec<&str> = file.sections.iter().map(|section| &*section.name).collect();
        assert_eq!(names, ["Server", "Client 2"]);
        let modules = &file.section("Server").unwrap().modules;
        assert_eq!((modules[0].option("user_bob"), modules[0].option("user_eve")), (Some("y"), None));
        assert_eq!((modules[1].flag, modules[1].options.len()), (Flag::Optional, 0));
        assert_eq!(file.section("Client 2").unwrap().modules[0].option("k"), Some("v"));
        assert!(!format!("{file:?}").contains('y'), "values are not shown");
    }

    #[test]
    fn values_are_words_or_texts_in_quotation_marks() {
        for (text, name, value) in [
            ("a=true", "a", "true"),
            ("a = \"b c\"", "a", "b c"),
            ("\"user_k@EX.COM\"=\"x\"", "user_k@EX.COM", "x"),
            ("user_\u{fc}=\"p\u{20ac}\"", "user_\u{fc}", "p\u{20ac}"),
            (r#"a="\"\\\n\u0041\101""#, "a", "\"\\\nu0041A"),
            ("a=\"\"", "a", ""),
            ("a=\"x${user.name}y\"", "a", "xrooty"),
            ("a=\"${/}\"", "a", "/"),
            ("a=\"${\"", "a", "${"),
            ("a=b a=c", "a", "c"),
            ("a-b.c$d_e=f", "a-b.c$d_e", "f"),
        ] {
            assert_eq!(options(text).unwrap(), pair(name, value), "{text}");
        }
    }

    #[test]
    fn what_java_refuses_is_refused() {
        for text in [
            "a='x'",
            "a=12",
            "a=x@y",
            "user_k@EX.COM=x",
            "# no",
            "a=\"x\ny\"",
            "a=\"x",
            "a",
            "a=",
            "=b",
            "a=\"${none}\"",
        ] {
            assert!(options(text).is_err(), "{text}");
        }
        for text in [
            "Server { a.B required }",
            "Server { a.B required; }",
            "Server { a.B needed; };",
            "Server a.B required;",
            "Server { a.B; };",
            "S { a.B required; }; S { a.B required; };",
            "{ a.B required; };",
        ] {
            assert!(parsed(text).is_err(), "{text}");
        }
        assert_eq!(parsed("").unwrap(), JaasFile::default());
        assert_eq!(parsed("Server {};").unwrap().sections[0].modules, []);
    }

    #[test]
    fn an_error_names_the_line_and_no_value() {
        let error = parsed("Server {\n  a.B required\n  a=\"secret\"\n  b=12;\n};").unwrap_err();
        let text = "line 4: a value, in quotation marks if it is no word is expected here";
        assert_eq!(error.to_string(), text);
        let twice = parsed("S { a.B required; };\nS { a.B required; };").unwrap_err();
        assert_eq!(twice.to_string(), "line 2: the section S comes a second time");
    }

    proptest::proptest! {
        #[test]
        fn no_text_panics(text in "[a-zA-Z \"'{};=\\\\$\n/*#0-9.]{0,200}") {
            let _ = parsed(&text);
        }
    }
}
