//! The name of the user that runs this process.

/// The name in /etc/passwd; the number of a user that is not there.
pub(super) fn name() -> String {
    let number = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    in_passwd(&users, number).map_or_else(|| number.to_string(), str::to_owned)
}

fn in_passwd(users: &str, number: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        (fields.nth(1)?.parse() == Ok(number)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_stands_beside_the_number() {
        let users = "root:x:0:0:root:/root:/bin/sh\n\nzookeeper:x:110:115::/var/lib/zk:/bin/false\nbad\n";
        assert_eq!(in_passwd(users, 110), Some("zookeeper"));
        assert_eq!(in_passwd(users, 0), Some("root"));
        assert_eq!(in_passwd(users, 11), None);
    }
}
