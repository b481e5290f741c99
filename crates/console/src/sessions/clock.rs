//! Times for people, in UTC.

/// A time, given in ms since 1970, as `2026-11-26 10:53:13.004`.
pub(crate) fn utc(ms: i64) -> String {
    let (days, of_day) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
    let (year, month, day) = date(days);
    let (seconds, millis) = (of_day / 1000, of_day % 1000);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hours:02}:{minutes:02}:{seconds:02}.{millis:03}")
}

/// The date of a day, counted from 1970. Years are counted from March here, so that the leap day is a year's last.
fn date(days: i64) -> (i64, i64, i64) {
    let from_year_0 = days + 719_468;
    let era = from_year_0.div_euclid(146_097);
    let of_era = from_year_0.rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, after) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + after, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00.000"),
            (-1, "1969-12-31 23:59:59.999"),
            (951_782_400_000, "2000-02-29 00:00:00.000"),
            (951_868_800_000, "2000-03-01 00:00:00.000"),
            (1_795_690_393_004, "2026-11-26 10:53:13.004"),
            (4_107_542_400_000, "2100-03-01 00:00:00.000"),
        ] {
            assert_eq!(utc(ms), text);
        }
    }
}
