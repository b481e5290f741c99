//! The tag by which the names of znodes tell which recipe of Ostler has created them.
//!
//! The recipes lay out their znodes as Curator does, so names and data alone do not tell whether a holder is a program
//! of Ostler's recipes. That matters to whoever wants to take a lock from its holder: some recipes of Ostler watch the
//! holder's own znode and stop when it is deleted, Curator's do not. The protection id in the name is random, and
//! Curator only requires that it is a UUID (its own are of version 4). With a tag it is a UUID of version 8, whose
//! twelve bits behind the version are the tag.

use uuid::{Builder, Uuid, Variant};

/// The first two of the tag's three digits.
const OSTLER: u16 = 0x5e0;

/// The recipe of Ostler that has created a znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RecipeTag {
    /// A leader latch. As long as it leads, it watches its own znode.
    LeaderLatch,
    /// A leader selector. As long as it leads, it watches its own znode.
    LeaderSelector,
    /// A mutex. The program decides whether it watches its own znode.
    Mutex,
    /// A read-write lock. The program decides whether it watches its own znode.
    ReadWriteLock,
    /// A semaphore. The program decides whether it watches its own znode.
    Semaphore,
}

impl RecipeTag {
    /// All tags.
    pub const ALL: [RecipeTag; 5] = [
        RecipeTag::LeaderLatch,
        RecipeTag::LeaderSelector,
        RecipeTag::Mutex,
        RecipeTag::ReadWriteLock,
        RecipeTag::Semaphore,
    ];

    /// The tag in a protected znode's name, if it has one.
    pub fn of(name: &str) -> Option<RecipeTag> {
        let id = name.strip_prefix(crate::protected::PREFIX)?.get(..36)?;
        let id = Uuid::try_parse(id).ok().filter(|id| id.get_version_num() == 8)?;
        let bytes = id.as_bytes();
        let tag = u16::from_be_bytes([bytes[6] & 0x0f, bytes[7]]);
        let is_rfc = id.get_variant() == Variant::RFC4122;
        RecipeTag::ALL.into_iter().find(|known| is_rfc && known.bits() == tag)
    }

    fn bits(self) -> u16 {
        let number = match self {
            RecipeTag::LeaderLatch => 1,
            RecipeTag::LeaderSelector => 2,
            RecipeTag::Mutex => 3,
            RecipeTag::ReadWriteLock => 4,
            RecipeTag::Semaphore => 5,
        };
        OSTLER | number
    }

    /// A random id with the tag in it.
    pub(crate) fn mark(self, id: Uuid) -> Uuid {
        let mut bytes = id.into_bytes();
        let [high, low] = self.bits().to_be_bytes();
        (bytes[6], bytes[7]) = (high, low);
        Builder::from_custom_bytes(bytes).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_read_from_a_name_as_written() {
        for tag in RecipeTag::ALL {
            let id = tag.mark(Uuid::new_v4());
            assert_eq!((id.get_version_num(), id.get_variant()), (8, Variant::RFC4122));
            assert_eq!(RecipeTag::of(&format!("_c_{id}-latch-0000000007")), Some(tag));
        }
        let id = RecipeTag::LeaderLatch.mark(Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef));
        assert_eq!(id.to_string(), "01234567-89ab-85e1-8123-456789abcdef");
    }

    #[test]
    fn other_names_have_no_tag() {
        for name in [
            // Of Curator, version 4.
            "_c_01234567-89ab-45e1-8123-456789abcdef-latch-0000000007",
            // Of somebody else's version 8, and of another variant.
            "_c_01234567-89ab-8000-8123-456789abcdef-latch-0000000007",
            "_c_01234567-89ab-85e9-8123-456789abcdef-latch-0000000007",
            "_c_01234567-89ab-85e1-0123-456789abcdef-latch-0000000007",
            // A UUID without dashes, and other texts.
            "_c_0123456789ab85e18123456789abcdef-latch-0000000007",
            "01234567-89ab-85e1-8123-456789abcdef-latch-0000000007",
            "_c_",
            "",
            "_c_äöüäöüäöüäöüäöüäöüäöüäöüäöüäöü",
        ] {
            assert_eq!(RecipeTag::of(name), None, "{name}");
        }
    }
}
