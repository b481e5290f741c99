//! Files that are read again when they change.

use std::time::Duration;

/// The time between two looks at files.
pub(crate) const LOOK_EVERY: Duration = Duration::from_secs(2);

/// The contents of files that are in force. Changed contents come into force once two looks have found the same: a file
/// that is being written may be half of one, and half of a list of users or of authorities is a good list, too.
#[derive(Debug)]
pub(crate) struct SettledContents<T> {
    in_force: T,
    changed: Option<T>,
}

impl<T: PartialEq> SettledContents<T> {
    pub(crate) fn new(in_force: T) -> SettledContents<T> {
        SettledContents { in_force, changed: None }
    }

    /// Notes the contents that a look has found. Returns true if they have changed and have settled: they are in force
    /// from now on, whether they can be used or not, so that one change is reported once.
    pub(crate) fn note(&mut self, found: T) -> bool {
        if found == self.in_force {
            self.changed = None;
            return false;
        }
        let has_settled = self.changed.as_ref() == Some(&found);
        match has_settled {
            true => (self.in_force, self.changed) = (found, None),
            false => self.changed = Some(found),
        }
        has_settled
    }

    pub(crate) fn in_force(&self) -> &T {
        &self.in_force
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_come_into_force_at_the_second_look() {
        let mut contents = SettledContents::new(1);
        let looks = [1, 2, 3, 3, 3, 4, 3, 4, 4];
        let settled: Vec<bool> = looks.iter().map(|found| contents.note(*found)).collect();
        assert_eq!(settled, [false, false, false, true, false, false, false, false, true]);
        assert_eq!(*contents.in_force(), 4);
    }
}
