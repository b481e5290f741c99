//! Numbers, dates and addresses as a Java server prints them; monitoring tools parse these texts.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::format_description;

/// A double as `Double.toString` writes it: always a decimal point, an exponent outside 0.001 … 10,000,000.
pub(super) struct Double(pub(super) f64);

impl fmt::Display for Double {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        if size == 0.0 || (1e-3..1e7).contains(&size) {
            return write!(f, "{:?}", self.0);
        }
        let scientific = format!("{:e}", self.0);
        match scientific.split_once('e') {
            Some((digits, exponent)) if digits.contains('.') => write!(f, "{digits}E{exponent}"),
            Some((digits, exponent)) => write!(f, "{digits}.0E{exponent}"),
            None => f.write_str(&scientific),
        }
    }
}

/// The mean as Java's counters give it: the quotient as a double, then cut to four decimals, halves away from
/// zero.
pub(crate) fn mean_of_four_decimals(sum: u64, count: u64) -> f64 {
    if count == 0 {
        return 0.0;
    }
    let mean = sum as f64 / count as f64;
    // The rounding looks at the exact value of the double, so it works on its full decimal expansion: 80
    // digits hold every double that a quotient of two counts can be.
    let exact = format!("{mean:.80}");
    let Some((whole, decimals)) = exact.split_once('.') else { return mean };
    let kept = format!("{whole}{}", &decimals[..4]);
    let round_up = decimals.as_bytes()[4] >= b'5';
    match kept.parse::<u128>() {
        Ok(ten_thousandths) => (ten_thousandths + u128::from(round_up)) as f64 / 10_000.0,
        Err(_) => mean,
    }
}

const DATE: &[BorrowedFormatItem<'_>] =
    format_description!("[weekday repr:short] [month repr:short] [day] [hour]:[minute]:[second] UTC [year]");

/// A wall-clock time as `Date.toString` writes it, always in UTC.
pub(super) struct Date {
    pub(super) wall_ms: i64,
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Clocks can be wrong by more than a calendar holds; the word that prints them must still answer.
        let Ok(date) = OffsetDateTime::from_unix_timestamp(self.wall_ms.div_euclid(1000)) else {
            return write!(f, "{} ms since 1970", self.wall_ms);
        };
        f.write_str(&date.format(DATE).map_err(|_| fmt::Error)?)
    }
}

/// A socket address as Java prints one that was never looked up by name: `/127.0.0.1:2181`,
/// `/[0:0:0:0:0:0:0:1]:2181`. IPv4 peers of a dual-stack socket show as IPv4.
pub(super) struct Address(pub(super) SocketAddr);

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.ip().to_canonical() {
            IpAddr::V4(ip) => write!(f, "/{ip}:{}", self.0.port()),
            IpAddr::V6(ip) => {
                let groups = ip.segments().map(|group| format!("{group:x}")).join(":");
                write!(f, "/[{groups}]:{}", self.0.port())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_look_like_java_doubles() {
        let text = |value: f64| Double(value).to_string();
        assert_eq!(text(0.0), "0.0");
        assert_eq!(text(1.2288), "1.2288");
        assert_eq!(text(74.6), "74.6");
        assert_eq!(text(12.0), "12.0");
        assert_eq!(text(9_999_999.0), "9999999.0");
        assert_eq!(text(10_000_000.0), "1.0E7");
        assert_eq!(text(123_456_789.5), "1.234567895E8");
        assert_eq!(text(0.001), "0.001");
        assert_eq!(text(0.0001), "1.0E-4");
    }

    #[test]
    fn means_have_four_decimals() {
        assert_eq!(mean_of_four_decimals(0, 0), 0.0);
        assert_eq!(mean_of_four_decimals(382, 311), 1.2283);
        assert_eq!(mean_of_four_decimals(47_855, 301), 158.9867);
        assert_eq!(mean_of_four_decimals(125, 3), 41.6667);
        assert_eq!(mean_of_four_decimals(2, 3), 0.6667);
        assert_eq!(mean_of_four_decimals(u64::MAX, 1), u64::MAX as f64);
    }

    #[test]
    fn halves_round_up_when_the_double_is_a_half() {
        // 1/32 = 0.03125 is exact in binary.
        assert_eq!(mean_of_four_decimals(1, 32), 0.0313);
        // 3/20000 = 0.00015 is not: its double lies just below the half.
        assert_eq!(mean_of_four_decimals(3, 20_000), 0.0001);
    }

    #[test]
    fn dates_look_like_java_dates() {
        assert_eq!(Date { wall_ms: 1_795_304_159_999 }.to_string(), "Sat Nov 21 23:35:59 UTC 2026");
        assert_eq!(Date { wall_ms: i64::MAX }.to_string(), "9223372036854775807 ms since 1970");
        assert_eq!(Date { wall_ms: 0 }.to_string(), "Thu Jan 01 00:00:00 UTC 1970");
    }

    #[test]
    fn addresses_look_like_java_addresses() {
        let text = |address: &str| Address(address.parse().unwrap()).to_string();
        assert_eq!(text("127.0.0.1:57204"), "/127.0.0.1:57204");
        assert_eq!(text("[::ffff:127.0.0.1]:5"), "/127.0.0.1:5");
        assert_eq!(text("[::1]:5"), "/[0:0:0:0:0:0:0:1]:5");
        assert_eq!(text("[fe80::a1]:5"), "/[fe80:0:0:0:0:0:0:a1]:5");
    }
}
