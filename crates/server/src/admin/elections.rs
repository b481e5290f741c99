//! A member's last elections, in the form in which the word `elec` gives them and `ostler explain` reads them.

pub use ostler_explain::records::{Commit, Discovered, Elected, Elections, Moment, Search, TakenOver};
