//! `ostler completions` and `ostler man`: what a package has besides the program, made from the commands themselves.

use clap::{Args, Command};
use clap_complete::Shell;
use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

/// Print the completion of a shell: words that Tab completes.
#[derive(Debug, Args)]
#[command(after_help = "Example: ostler completions bash > /etc/bash_completion.d/ostler")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Write the manual pages into a folder, one for each command.
#[derive(Debug, Args)]
#[command(after_help = "Example: ostler man /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    /// The folder, which must be there.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Prints the completion.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> ExitCode {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "ostler", &mut text);
    match io::stdout().write_all(&text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ostler: cannot write the completion: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the pages. They have no date, so that two builds of a package are equal.
pub(crate) fn man(args: &ManArgs, command: Command) -> ExitCode {
    match clap_mangen::generate_to(command, &args.folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ostler: cannot write pages into {}: {error}", args.folder.display());
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn each_command_that_is_shown_has_a_page_without_a_date() {
        let shell = Command::new("shell").about("znodes by hand").subcommand(Command::new("deep"));
        let command = Command::new("ostler").version("1.2.3").subcommand(shell);
        let command = command.subcommand(Command::new("secret").hide(true));
        let folder = tempfile::tempdir().unwrap();
        let args = ManArgs { folder: folder.path().to_owned() };
        assert_eq!(man(&args, command), ExitCode::SUCCESS);
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["ostler-shell-deep.1", "ostler-shell.1", "ostler.1"]);
        let text = fs::read_to_string(folder.path().join("ostler-shell.1")).unwrap();
        assert!(text.contains(".TH ostler-shell 1  \"shell"), "{text}");
        assert!(text.contains("znodes by hand"), "{text}");
    }
}
