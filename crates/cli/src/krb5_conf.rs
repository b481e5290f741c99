//! The configuration of Kerberos, where a Java program finds it: `-Djava.security.krb5.conf`.

use std::{env, os::unix::process::CommandExt, process::Command};

/// The variables in which ZooKeeper's scripts find flags of the JVM. The last one wins.
const VARIABLES: [&str; 4] = ["JAVA_TOOL_OPTIONS", "SERVER_JVMFLAGS", "CLIENT_JVMFLAGS", "JVMFLAGS"];
/// The variable in which MIT's library finds the file.
const OF_LIBRARY: &str = "KRB5_CONFIG";

/// Starts this program again with `KRB5_CONFIG`, if flags of a JVM name the file and the variable does not. The library
/// reads the environment, which a program must not change while it runs.
pub(crate) fn take_from_jvm_flags() {
    if !ostler_kerberos::IS_BUILT || env::var_os(OF_LIBRARY).is_some() {
        return;
    }
    let flags = VARIABLES.iter().filter_map(|name| env::var(name).ok());
    let files = flags.filter_map(|flags| file_in(&flags).map(str::to_owned));
    let Some(file) = files.collect::<Vec<_>>().pop() else { return };
    let Ok(program) = env::current_exe() else { return };
    let error = Command::new(program).args(env::args_os().skip(1)).env(OF_LIBRARY, file).exec();
    eprintln!("ostler: cannot start again with {OF_LIBRARY}: {error}");
}

fn file_in(flags: &str) -> Option<&str> {
    flags.split_whitespace().filter_map(|flag| flag.strip_prefix("-Djava.security.krb5.conf=")).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_flag_names_the_file() {
        let key = "-Djava.security.krb5.conf";
        assert_eq!(file_in(&format!("-Xmx1g {key}=/a {key}=/b -Dx=y")), Some("/b"));
        assert_eq!(file_in("-Xmx1g"), None);
    }
}
