//! `ostler shell`: znodes by hand and from scripts, with the commands of ZooKeeper's own shell.

mod acl_text;
mod announcement;
mod answer;
mod catalogue;
mod client_configuration;
mod command;
mod completion;
mod connection;
mod drawing;
mod error;
mod interactive;
mod kerberos;
mod options;
mod output;
mod pattern;
mod perform;
mod quota_text;
mod script;
mod session;
mod signals;
mod stat_text;
mod tally;
mod value_text;
mod walk;
mod watches;
mod words;

use crate::tls_options::TlsOptions;
use answer::OutputStyle;
use clap::Args;
use client_configuration::ClientConfiguration;
use connection::{ConnectOptions, SaslUser, Tls};
use error::{Exit, ShellError, While};
use kerberos::KerberosUser;
use output::{Output, Teller, note};
use session::{Input, ShellSession};
use std::{
    ffi::OsString,
    fs,
    io::{self, IsTerminal},
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};
use tokio::runtime::{Builder, Runtime};
use words::Word;

const DEFAULT_SERVERS: &str = "localhost:2181";

/// Read and change znodes, as zkCli.sh does: at a prompt, by one command, or by commands from the standard input.
///
/// The commands are those of zkCli.sh, and more; the command `help` lists them. If the output is not a terminal, the
/// answers are those of zkCli.sh. Exit codes: 0 everything was done, 1 a request was refused or failed, 2 a command was
/// not understood, 3 there was no connection and nothing was done, 4 the connection was lost before the reply, so the
/// command may be done, or done in part.
#[derive(Debug, Args)]
#[command(after_help = "Example: ostler shell localhost:2181 get /app/config")]
pub(crate) struct ShellArgs {
    /// Servers to connect to, and the znode to use as the root (chroot), as for zkCli.sh; with it, all arguments are the command
    /// [default: localhost:2181].
    #[arg(long, value_name = "HOST:PORT,...[/ROOT]")]
    server: Option<String>,
    /// Print answers as JSON, one object on each line.
    #[arg(long)]
    json: bool,
    /// Stop at the first failed command when commands are read from the standard input.
    #[arg(short = 'e', long)]
    exit_on_error: bool,
    /// Session timeout to ask the server for, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 30_000)]
    timeout: u64,
    /// How long to try to connect, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 15_000)]
    connect_timeout: u64,
    /// Also connect to a server that is cut off from its ensemble and serves only reads (read-only mode).
    #[arg(short = 'r', long)]
    read_only: bool,
    /// Identity to authenticate with, as with addauth, for example digest:user:password; other users of this machine
    /// can see it, unlike with --auth-file.
    #[arg(long, value_name = "SCHEME:SECRET")]
    auth: Vec<String>,
    /// File with identities to authenticate with, one on each line, for example digest:user:password.
    #[arg(long, value_name = "FILE")]
    auth_file: Option<PathBuf>,
    /// Configuration file of a Java client, with its key store and trust store; its JAAS file counts, too.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["tls_ca", "sasl_user"])]
    client_configuration: Option<PathBuf>,
    /// User name for SASL (DIGEST-MD5).
    #[arg(long, value_name = "USER", requires = "sasl_password_file")]
    sasl_user: Option<String>,
    /// File with the password for SASL on its first line.
    #[arg(long, value_name = "FILE", requires = "sasl_user")]
    sasl_password_file: Option<PathBuf>,
    /// Log in by Kerberos (SASL GSSAPI), with the tickets of kinit or with --kerberos-keytab.
    #[arg(long, conflicts_with_all = ["sasl_user", "client_configuration"])]
    kerberos: bool,
    /// File with the keys of --kerberos-principal.
    #[arg(long, value_name = "FILE", requires_all = ["kerberos", "kerberos_principal"])]
    kerberos_keytab: Option<PathBuf>,
    /// The principal to log in as, such as client@EXAMPLE.COM.
    #[arg(long, value_name = "PRINCIPAL", requires = "kerberos_keytab")]
    kerberos_principal: Option<String>,
    /// The first part of the servers' principals; the second one is the host of the server.
    #[arg(long, value_name = "NAME", default_value = "zookeeper")]
    kerberos_service: String,
    #[command(flatten)]
    tls: TlsOptions,
    /// Servers [default: localhost:2181], and a command with its arguments [default: commands from the prompt or the
    /// standard input].
    #[arg(trailing_var_arg = true, value_name = "HOST:PORT,...[/ROOT]] [COMMAND [ARGS]")]
    words: Vec<OsString>,
}

/// Options of zkCli.sh that have one dash, as they are called here.
const UPSTREAM_OPTIONS: [(&str, Option<&str>); 4] = [
    ("-server", Some("--server")),
    ("-timeout", Some("--timeout")),
    ("-client-configuration", Some("--client-configuration")),
    ("-waitforconnection", None),
];

/// Options that are followed by no value.
const FLAGS: [&str; 7] =
    ["-r", "--read-only", "-e", "--exit-on-error", "--json", "--kerberos", "-waitforconnection"];

/// The program's arguments, with those of zkCli.sh's options that `ostler shell` was given in their modern form.
pub(crate) fn modernized(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let arguments: Vec<OsString> = arguments.collect();
    if arguments.get(1).is_none_or(|subcommand| subcommand != "shell") {
        return arguments;
    }
    let mut before_words = true;
    let mut value = false;
    let modern = |argument: OsString| {
        let known = UPSTREAM_OPTIONS.iter().find(|(name, _)| before_words && argument == **name);
        // The first argument that is neither an option nor an option's value is the first word.
        let is_option = argument.as_encoded_bytes().starts_with(b"-");
        before_words &= is_option || value;
        value = is_option && !FLAGS.iter().any(|flag| argument == **flag);
        match known {
            Some((_, modern)) => modern.map(OsString::from),
            None => Some(argument),
        }
    };
    let (program, rest) = (arguments[..2].to_vec(), arguments.into_iter().skip(2));
    program.into_iter().chain(rest.filter_map(modern)).collect()
}

/// Runs until there are no more commands.
pub(crate) fn run(args: ShellArgs) -> ExitCode {
    let exit = start(args).unwrap_or_else(|error| {
        if !error.is_silent() {
            note(&error.to_string());
        }
        error.exit()
    });
    ExitCode::from(exit.code())
}

fn start(args: ShellArgs) -> Result<Exit, ShellError> {
    let options = args.connect_options()?;
    let style = args.style();
    let exit_on_error = args.exit_on_error;
    let (servers, words) = servers_and_words(args.server, args.words);
    let runtime = runtime()?;
    if words.is_empty() && io::stdin().is_terminal() {
        return interactive::run(&servers, options, style, &runtime);
    }
    let shell = ShellSession::new(&servers, options, Output::new(style), Teller::new(style));
    match words.is_empty() {
        true => script::from_input(shell.input_is(Input::Commands), exit_on_error, &runtime),
        false => script::once(shell, &words, &runtime),
    }
}

fn runtime() -> Result<Runtime, ShellError> {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().during("cannot start")
}

/// The first word names the servers, unless an option does, or it is a command.
fn servers_and_words(server: Option<String>, words: Vec<OsString>) -> (String, Vec<Word>) {
    let mut words: Vec<Word> = words.into_iter().map(|word| Word::plain(word.into_vec())).collect();
    if let Some(server) = server {
        return (server, words);
    }
    let first = words.first().and_then(|word| word.text().ok()).map(str::to_owned);
    match first {
        Some(first) if catalogue::find(&first).is_none() => {
            words.remove(0);
            (first, words)
        }
        _ => (DEFAULT_SERVERS.to_owned(), words),
    }
}

impl ShellArgs {
    fn style(&self) -> OutputStyle {
        if self.json {
            return OutputStyle::Json;
        }
        let plain = std::env::var_os("NO_COLOR").is_some_and(|text| !text.is_empty())
            || std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
        match io::stdout().is_terminal() {
            true => OutputStyle::Notes { colour: !plain },
            false => OutputStyle::Plain,
        }
    }

    fn connect_options(&self) -> Result<ConnectOptions, ShellError> {
        let mut identities = Vec::new();
        let in_file = self.auth_file.as_deref().map(text_of).transpose()?.unwrap_or_default();
        let in_file = in_file.lines().map(str::trim).filter(|line| !line.is_empty());
        for identity in self.auth.iter().map(String::as_str).chain(in_file) {
            let (scheme, secret) = identity.split_once(':').ok_or_else(|| {
                ShellError::Refused(
                    "an identity has the form scheme:secret, as in digest:user:password".into(),
                )
            })?;
            identities.push((scheme.to_owned(), secret.as_bytes().to_vec()));
        }
        let sasl = match (&self.sasl_user, &self.sasl_password_file) {
            (Some(user), Some(file)) => {
                let password = text_of(file)?.lines().next().unwrap_or_default().to_owned();
                Some(SaslUser::Digest { user: user.clone(), password })
            }
            _ => self.kerberos().map(SaslUser::Kerberos),
        };
        let of_java = self.client_configuration.as_deref().map(ClientConfiguration::read).transpose()?;
        let (sasl, tls) = match &of_java {
            Some(of_java) => (of_java.sasl()?, of_java.tls()?.map(Tls::Stores)),
            None => (sasl, self.tls.read()?.map(Tls::Pem)),
        };
        Ok(ConnectOptions {
            session_timeout: Duration::from_millis(self.timeout),
            connection_timeout: Duration::from_millis(self.connect_timeout),
            read_only: self.read_only,
            identities,
            sasl,
            tls,
        })
    }

    fn kerberos(&self) -> Option<KerberosUser> {
        let keytab = self.kerberos_keytab.clone().zip(self.kerberos_principal.clone());
        self.kerberos.then(|| KerberosUser {
            keytab,
            service: self.kerberos_service.clone(),
            server_principal: None,
        })
    }
}

fn text_of(path: &Path) -> Result<String, ShellError> {
    fs::read_to_string(path).map_err(|cause| ShellError::File { path: path.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modern(line: &str) -> String {
        let words = modernized(line.split(' ').map(OsString::from));
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn options_of_zkcli_are_accepted() {
        let given = "ostler shell -server h:1 -timeout 5000 -waitforconnection -r ls -server /";
        assert_eq!(modern(given), "ostler shell --server h:1 --timeout 5000 -r ls -server /");
        assert_eq!(modern("ostler shell h:1 get -server"), "ostler shell h:1 get -server");
        assert_eq!(modern("ostler bench -server h"), "ostler bench -server h");
    }

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        shell: ShellArgs,
    }

    #[test]
    fn secrets_are_read_from_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path.to_str().unwrap().to_owned()
        };
        let identities = file("identities", "digest:a:b:c\n\n digest:d:e \n");
        let password = file("password", " secret\nof another\n");
        let words = [
            "shell",
            "--auth-file",
            &identities,
            "--auth",
            "ip:",
            "--sasl-user",
            "bob",
            "--sasl-password-file",
            &password,
        ];
        let options = <Program as clap::Parser>::parse_from(words).shell.connect_options().unwrap();
        let Some(SaslUser::Digest { user, password }) = options.sasl else { panic!("no user") };
        assert_eq!((&*user, &*password), ("bob", " secret"));
        let secret = |scheme: &str, secret: &str| (scheme.to_owned(), secret.as_bytes().to_vec());
        assert_eq!(
            options.identities,
            [secret("ip", ""), secret("digest", "a:b:c"), secret("digest", "d:e")]
        );
    }

    #[test]
    fn the_first_word_names_servers_unless_it_is_a_command() {
        let split = |server: Option<&str>, words: &str| {
            let words = words.split(' ').filter(|word| !word.is_empty()).map(OsString::from).collect();
            let (servers, words) = servers_and_words(server.map(str::to_owned), words);
            (servers, words.len())
        };
        assert_eq!(split(None, ""), ("localhost:2181".into(), 0));
        assert_eq!(split(None, "h:1/app ls /"), ("h:1/app".into(), 2));
        assert_eq!(split(None, "ls /"), ("localhost:2181".into(), 2));
        assert_eq!(split(Some("h"), "g:1 /"), ("h".into(), 2));
    }
}
