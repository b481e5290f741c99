//! Weaves all mutants of a file into it. Each can be switched on by its number; by default none is on.
//!
//! So one build is enough, where a program for each mutant takes hours. Mutants that cannot be woven (in constants, or
//! of patterns that need every arm) are left out and get a program of their own.

use super::listed::{Kind, Mutant, Place};
use anyhow::{Context, Result};
use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
};
use syn::{
    Arm, BinOp, Expr, ExprBinary, ExprUnary, ImplItemFn, ItemConst, ItemFn, ItemStatic,
    spanned::Spanned,
    visit::{self, Visit},
};

/// A module at the end of a crate's first file, which knows the mutant that is on.
pub(super) const SWITCH: &str = r#"
#[doc(hidden)]
#[allow(warnings)]
pub(crate) mod woven_mutants {
    extern crate std;
    pub(crate) fn is(number: u32) -> bool {
        static ON: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
        *ON.get_or_init(|| std::env::var("WOVEN_MUTANT").ok().and_then(|on| on.parse().ok()).unwrap_or(u32::MAX)) == number
    }
}
"#;

/// A file with its mutants woven in.
#[derive(Debug, Default)]
pub(super) struct Woven {
    pub(super) text: String,
    /// The numbers of its mutants.
    pub(super) numbers: Vec<usize>,
    /// For a mutant, or for all mutants of a place: their bytes in the text.
    pieces: Vec<(Range<usize>, Vec<usize>)>,
}

impl Woven {
    /// The mutants that cause a compiler error at these bytes: those of the smallest piece around it.
    pub(super) fn at(&self, bytes: Range<usize>) -> Vec<usize> {
        let around =
            self.pieces.iter().filter(|(piece, _)| piece.start <= bytes.start && bytes.end <= piece.end);
        around.min_by_key(|(piece, _)| piece.len()).map(|(_, numbers)| numbers.clone()).unwrap_or_default()
    }
}

/// A piece of the source that is there in more than one form.
#[derive(Debug)]
enum Form {
    /// Mutants with the texts that replace the piece. The original still contains other woven pieces.
    Instead(Vec<(usize, String)>),
    /// The guard of an arm: mutants with their texts, and one that removes the arm.
    Guard(Vec<(usize, String)>, Option<usize>),
    /// The place after the pattern of an arm without a guard.
    NoGuard(usize),
    /// The begin of a function.
    Return(Vec<(usize, String)>),
}

/// Puts the mutants into `source`, each with its number.
pub(super) fn weave(source: &str, mutants: &[(usize, &Mutant)]) -> Result<Woven> {
    let file = syn::parse_file(source).context("not Rust")?;
    let mut finder = Finder {
        source,
        lines: line_starts(source),
        by_start: HashMap::new(),
        forms: BTreeMap::new(),
        constant: 0,
    };
    for (number, mutant) in mutants {
        let key = finder.byte_of(mutant.start);
        if mutant.kind == Kind::FnValue {
            finder.add_return(key, *number, &mutant.replacement);
        } else {
            finder.by_start.entry(key).or_default().push((*number, (*mutant).clone()));
        }
    }
    finder.visit_file(&file);
    let mut woven = Woven::default();
    let forms: Vec<(Range<usize>, Form)> =
        finder.forms.into_iter().map(|(rank, form)| (rank.start..rank.end, form)).collect();
    render(source, 0..source.len(), &forms, &mut woven);
    Ok(woven)
}

fn line_starts(source: &str) -> Vec<usize> {
    std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// The order of forms: by their begin, then insertions, then the longest first, then guards before their expressions.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
struct Rank {
    start: usize,
    length: std::cmp::Reverse<usize>,
    inner: bool,
    end: usize,
}

impl Rank {
    fn of(range: &Range<usize>) -> Rank {
        let length = if range.is_empty() { usize::MAX } else { range.len() };
        Rank { start: range.start, length: std::cmp::Reverse(length), inner: false, end: range.end }
    }
}

struct Finder<'a> {
    source: &'a str,
    lines: Vec<usize>,
    by_start: HashMap<usize, Vec<(usize, Mutant)>>,
    forms: BTreeMap<Rank, Form>,
    /// The number of constants and constant functions around the current place.
    constant: u32,
}

impl Finder<'_> {
    fn byte_of(&self, place: Place) -> usize {
        let start = self.lines[place.line - 1];
        let before = self.source[start..].chars().take(place.column - 1);
        start + before.map(char::len_utf8).sum::<usize>()
    }

    fn add(&mut self, range: Range<usize>, form: Form) {
        let inner = matches!(form, Form::Instead(_));
        let rank = Rank { inner, ..Rank::of(&range) };
        self.forms.insert(rank, form);
    }

    fn add_return(&mut self, at: usize, number: usize, value: &str) {
        let form = self.forms.entry(Rank::of(&(at..at))).or_insert_with(|| Form::Return(Vec::new()));
        if let Form::Return(values) = form {
            values.push((number, value.to_owned()));
        }
    }

    fn take(&mut self, at: usize, kind: Kind) -> Vec<(usize, Mutant)> {
        if self.constant > 0 {
            return Vec::new();
        }
        let all = self.by_start.get(&at).into_iter().flatten();
        all.filter(|(_, mutant)| mutant.kind == kind).cloned().collect()
    }

    fn in_constant(&mut self, is_constant: bool, visit: impl FnOnce(&mut Self)) {
        self.constant += u32::from(is_constant);
        visit(self);
        self.constant -= u32::from(is_constant);
    }
}

fn bytes(of: &impl Spanned) -> Range<usize> {
    of.span().byte_range()
}

/// Whether a condition binds names. Such a condition cannot be written twice.
fn binds(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(ExprBinary { left, op: BinOp::And(_), right, .. }) => binds(left) || binds(right),
        _ => false,
    }
}

impl Visit<'_> for Finder<'_> {
    fn visit_expr_binary(&mut self, expr: &ExprBinary) {
        let op = bytes(&expr.op);
        let mutants = self.take(op.start, Kind::BinaryOperator);
        if !mutants.is_empty() && !binds(&expr.left) && !binds(&expr.right) {
            let whole = bytes(expr);
            let (left, right) = (&self.source[whole.start..op.start], &self.source[op.end..whole.end]);
            let text = |mutant: &Mutant| format!("{left}{}{right}", mutant.replacement);
            let texts = mutants.iter().map(|(number, mutant)| (*number, text(mutant))).collect();
            self.add(whole, Form::Instead(texts));
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &ExprUnary) {
        let (whole, op) = (bytes(expr), bytes(&expr.op));
        let mutants = self.take(op.start, Kind::UnaryOperator);
        if !mutants.is_empty() {
            let text = self.source[op.end..whole.end].to_owned();
            self.add(
                whole,
                Form::Instead(mutants.iter().map(|(number, _)| (*number, text.clone())).collect()),
            );
        }
        visit::visit_expr_unary(self, expr);
    }

    fn visit_arm(&mut self, arm: &Arm) {
        let deleted = self.take(bytes(arm).start, Kind::MatchArm).first().map(|(number, _)| *number);
        match &arm.guard {
            Some((_, guard)) if !binds(guard) => {
                let range = bytes(guard);
                let mutants = self.take(range.start, Kind::MatchArmGuard);
                let texts: Vec<_> =
                    mutants.into_iter().map(|(number, mutant)| (number, mutant.replacement)).collect();
                if !texts.is_empty() || deleted.is_some() {
                    self.add(range, Form::Guard(texts, deleted));
                }
            }
            Some(_) => {}
            None => {
                if let Some(number) = deleted {
                    let at = bytes(&arm.pat).end;
                    self.add(at..at, Form::NoGuard(number));
                }
            }
        }
        visit::visit_arm(self, arm);
    }

    fn visit_item_fn(&mut self, item: &ItemFn) {
        self.in_constant(item.sig.constness.is_some(), |this| visit::visit_item_fn(this, item));
    }

    fn visit_impl_item_fn(&mut self, item: &ImplItemFn) {
        self.in_constant(item.sig.constness.is_some(), |this| visit::visit_impl_item_fn(this, item));
    }

    fn visit_item_const(&mut self, item: &ItemConst) {
        self.in_constant(true, |this| visit::visit_item_const(this, item));
    }

    fn visit_item_static(&mut self, item: &ItemStatic) {
        self.in_constant(true, |this| visit::visit_item_static(this, item));
    }
}

fn is_on(number: usize) -> String {
    format!("crate::woven_mutants::is({number})")
}

/// `forms` are those inside of `range`, in their order, the outer ones before those inside of them.
fn render(source: &str, range: Range<usize>, forms: &[(Range<usize>, Form)], woven: &mut Woven) {
    let (mut at, mut next) = (range.start, 0);
    while let Some((of, form)) = forms.get(next) {
        woven.text.push_str(&source[at..of.start]);
        let inside = forms[next + 1..].iter().take_while(|(inner, _)| of.end > inner.start).count();
        let inner = &forms[next + 1..next + 1 + inside];
        let begin = woven.text.len();
        let numbers = render_form(source, of.clone(), form, inner, woven);
        woven.pieces.push((begin..woven.text.len(), numbers.clone()));
        woven.numbers.extend(numbers);
        (at, next) = (of.end, next + 1 + inside);
    }
    woven.text.push_str(&source[at..range.end]);
}

fn render_form(
    source: &str,
    of: Range<usize>,
    form: &Form,
    inner: &[(Range<usize>, Form)],
    woven: &mut Woven,
) -> Vec<usize> {
    match form {
        Form::Return(values) => {
            for (number, value) in values {
                put(woven, *number, &format!("if {} {{ return {value}; }}\n", is_on(*number)));
            }
            values.iter().map(|(number, _)| *number).collect()
        }
        Form::NoGuard(number) => {
            put(woven, *number, &format!(" if !{} ", is_on(*number)));
            vec![*number]
        }
        Form::Instead(texts) => {
            woven.text.push('(');
            render_choice(source, of, texts, inner, woven);
            woven.text.push(')');
            texts.iter().map(|(number, _)| *number).collect()
        }
        Form::Guard(texts, deleted) => {
            if let Some(number) = deleted {
                put(woven, *number, &format!("!{} && ", is_on(*number)));
            }
            woven.text.push('(');
            render_choice(source, of, texts, inner, woven);
            woven.text.push(')');
            texts.iter().map(|(number, _)| *number).chain(*deleted).collect()
        }
    }
}

fn render_choice(
    source: &str,
    of: Range<usize>,
    texts: &[(usize, String)],
    inner: &[(Range<usize>, Form)],
    woven: &mut Woven,
) {
    for (number, text) in texts {
        put(woven, *number, &format!("if {} {{ {text} }} else ", is_on(*number)));
    }
    woven.text.push_str(if texts.is_empty() { "" } else { "{ " });
    render(source, of, inner, woven);
    woven.text.push_str(if texts.is_empty() { "" } else { " }" });
}

fn put(woven: &mut Woven, number: usize, text: &str) {
    let begin = woven.text.len();
    woven.text.push_str(text);
    woven.pieces.push((begin..woven.text.len(), vec![number]));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mutant(kind: Kind, start: (usize, usize), replacement: &str) -> Mutant {
        let place = |(line, column)| Place { line, column };
        Mutant {
            name: String::new(),
            file: String::new(),
            kind,
            replacement: replacement.into(),
            start: place(start),
            function: None,
        }
    }

    fn woven(source: &str, mutants: &[Mutant]) -> String {
        let numbered: Vec<(usize, &Mutant)> = mutants.iter().enumerate().collect();
        let woven = weave(source, &numbered).unwrap();
        woven.text.replace("crate::woven_mutants::is", "on")
    }

    #[test]
    fn nested_operators_are_each_written_once_more() {
        let source = "fn f() -> bool {\n    a < b && !c\n}\n";
        let mutants = [
            mutant(Kind::BinaryOperator, (2, 7), "<="),
            mutant(Kind::BinaryOperator, (2, 11), "||"),
            mutant(Kind::UnaryOperator, (2, 14), ""),
            mutant(Kind::FnValue, (2, 5), "true"),
        ];
        assert_eq!(
            woven(source, &mutants),
            "fn f() -> bool {\n    if on(3) { return true; }\n\
             (if on(1) { a < b || !c } else { (if on(0) { a <= b } else { a < b }) && (if on(2) { c } else { !c }) })\n}\n"
        );
    }

    #[test]
    fn arms_have_guards() {
        let source =
            "fn f() {\n    match x {\n        A if a => {}\n        B => {}\n        _ => {}\n    }\n}\n";
        let mutants = [
            mutant(Kind::MatchArm, (3, 9), ""),
            mutant(Kind::MatchArmGuard, (3, 14), "true"),
            mutant(Kind::MatchArm, (4, 9), ""),
        ];
        let text = woven(source, &mutants);
        assert!(text.contains("A if !on(0) && (if on(1) { true } else { a }) => {}"), "{text}");
        assert!(text.contains("B if !on(2)  => {}"), "{text}");
    }

    #[test]
    fn constants_and_conditions_that_bind_are_left_out() {
        let source = "const A: u8 = 1 + 1;\nfn f() {\n    if a && let Some(b) = c {}\n}\n";
        let mutants =
            [mutant(Kind::BinaryOperator, (1, 17), "-"), mutant(Kind::BinaryOperator, (3, 10), "||")];
        assert_eq!(woven(source, &mutants), source);
    }

    #[test]
    fn an_error_is_about_the_smallest_piece_around_it() {
        let source = "fn f() -> bool {\n    a < b\n}\n";
        let mutants = [mutant(Kind::BinaryOperator, (2, 7), "<="), mutant(Kind::BinaryOperator, (2, 7), ">")];
        let numbered: Vec<(usize, &Mutant)> = mutants.iter().enumerate().collect();
        let woven = weave(source, &numbered).unwrap();
        let at = woven.text.find("a > b").unwrap();
        assert_eq!(woven.at(at..at + 5), [1]);
        let at = woven.text.rfind("a < b").unwrap();
        assert_eq!(woven.at(at..at + 5), [0, 1]);
        assert!(woven.at(0..1).is_empty());
    }
}
