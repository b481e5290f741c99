//! Names of the error codes in replies.

use ostler_proto::error::ErrorCode;

/// The name of a code, such as `NoNode (-101)`; only the number of an unknown code.
pub(crate) fn name(code: i32) -> String {
    match ErrorCode::from_code(code) {
        Some(known) => format!("{} ({code})", known.name()),
        None => format!("error {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_names() {
        assert_eq!(name(-101), "NoNode (-101)");
        assert_eq!(name(-77), "error -77");
    }
}
