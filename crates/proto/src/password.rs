//! Session passwords that follow from the session's id.
//!
//! They are computed with Java's random generator, so all servers of an ensemble, Java's too, compute the same password
//! and store none. Passwords made with a secret are not here.

use crate::{connect::Password, id::SessionId};

const SALT: i64 = 0xB341_5C00;
const MULTIPLIER: u64 = 0x5_DEEC_E66D;
const MASK: u64 = (1 << 48) - 1;

/// The password that follows from a session's id.
pub fn password_of(session: SessionId) -> Password {
    let mut state = ((session.0 ^ SALT) as u64 ^ MULTIPLIER) & MASK;
    let mut password = [0; 16];
    for word in password.chunks_exact_mut(4) {
        state = (state.wrapping_mul(MULTIPLIER).wrapping_add(0xB)) & MASK;
        // `nextBytes` hands out each 32-bit word low byte first.
        word.copy_from_slice(&((state >> 16) as u32).to_le_bytes());
    }
    password
}

/// Whether `given` is the password of `session`. For session 0 no password is right.
pub fn opens(session: SessionId, given: Option<&[u8]>) -> bool {
    session != SessionId::NONE && given == Some(&password_of(session))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_the_same_as_in_java() {
        let first = 0xb743_5b1e_2527_b0c5_c043_b411_7845_d1f6_u128;
        assert_eq!(password_of(SessionId(0x0100_0019_eb46_0005)), first.to_be_bytes());
        let second = 0xcced_7abd_8d4b_3264_33e4_d078_edff_13de_u128;
        assert_eq!(password_of(SessionId(0x0100_0010_c81e_0004)), second.to_be_bytes());
        assert!(!opens(SessionId::NONE, Some(&password_of(SessionId::NONE))));
    }
}
