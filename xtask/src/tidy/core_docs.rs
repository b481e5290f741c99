//! Checks that the inputs and effects of the core, which are the map to it, are documented with more than a word.

use super::sources::SourceFile;
use anyhow::{Context, Result};
use syn::{Attribute, Expr, ExprLit, Fields, Item, Lit, Meta, spanned::Spanned};

/// The files, each with the enum to check.
const ENUMS: [(&str, &str); 2] =
    [("crates/server-core/src/input.rs", "Input"), ("crates/server-core/src/effect.rs", "Effect")];
const WORDS_MIN: usize = 3;

/// Complaints about variants and fields without a doc, or with a doc that is too short.
pub(crate) fn check(file: &SourceFile) -> Result<Vec<String>> {
    let Some((name, wanted)) = ENUMS.into_iter().find(|(name, _)| file.name == *name) else {
        return Ok(Vec::new());
    };
    let parsed = syn::parse_file(&file.text).with_context(|| format!("cannot parse {name}"))?;
    let mut complaints = Vec::new();
    let mut complain = |line: usize, what: String| {
        complaints.push(format!("{name}:{line}: {what} needs a doc of at least {WORDS_MIN} words"));
    };
    let enums = parsed.items.iter().filter_map(|item| match item {
        Item::Enum(item) if item.ident == wanted => Some(item),
        _ => None,
    });
    for variant in enums.flat_map(|item| &item.variants) {
        if words_of_doc(&variant.attrs) < WORDS_MIN {
            complain(variant.ident.span().start().line, format!("{wanted}::{}", variant.ident));
        }
        let Fields::Named(fields) = &variant.fields else { continue };
        for field in fields.named.iter().filter(|field| words_of_doc(&field.attrs) < WORDS_MIN) {
            let ident = field.ident.as_ref().map(ToString::to_string).unwrap_or_default();
            complain(field.ty.span().start().line, format!("{wanted}::{}.{ident}", variant.ident));
        }
    }
    Ok(complaints)
}

fn words_of_doc(attributes: &[Attribute]) -> usize {
    let docs = attributes.iter().filter(|attribute| attribute.path().is_ident("doc"));
    docs.filter_map(|doc| match &doc.meta {
        Meta::NameValue(pair) => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().split_whitespace().count()),
            _ => None,
        },
        _ => None,
    })
    .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_and_fields_need_a_doc() {
        let text = "/// Not this one.\npub enum Other { A }\n\
            pub enum Input {\n    /// A client connects.\n    Accepted {\n        /// Which.\n        conn: u8,\n    },\n    \
            Gone(u8),\n}\n";
        let complaints = |name: &str| {
            check(&SourceFile { name: name.to_owned(), text: text.to_owned() }).unwrap().join("\n")
        };
        assert_eq!(
            complaints("crates/server-core/src/input.rs"),
            "crates/server-core/src/input.rs:7: Input::Accepted.conn needs a doc of at least 3 words\n\
             crates/server-core/src/input.rs:9: Input::Gone needs a doc of at least 3 words"
        );
        assert_eq!(complaints("crates/server-core/src/server.rs"), "");
    }
}
