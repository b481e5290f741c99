//! `ostler completions` and `ostler man`: what a package has besides the program, made from the commands themselves.

use clap::{Args, Command};
use clap_complete::Shell;
use std::{fs, io, path::PathBuf, process::ExitCode};

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
    clap_complete::generate(args.shell, &mut command, "ostler", &mut io::stdout());
    ExitCode::SUCCESS
}

/// Writes the pages.
pub(crate) fn man(args: &ManArgs, command: Command) -> ExitCode {
    // The pages of packages are the same for each build, so they have no date.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let pages = pages(&command, None);
    for (name, page) in &pages {
        let path = args.folder.join(format!("{name}.1"));
        if let Err(error) = fs::write(&path, page) {
            eprintln!("ostler: cannot write {}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// The names of a command's page and of those of its subcommands, each with its text.
fn pages(command: &Command, above: Option<&str>) -> Vec<(String, Vec<u8>)> {
    let name = above.map_or_else(|| command.get_name().to_owned(), |above| format!("{above}-{}", command.get_name()));
    let mut page = Vec::new();
    let titled = command.clone().name(name.clone()).bin_name(name.replace('-', " "));
    clap_mangen::Man::new(titled).render(&mut page).expect("a Vec takes all bytes");
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    let below: Vec<_> = below.flat_map(|below| pages(below, Some(&name))).collect();
    [(name, page)].into_iter().chain(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_that_is_shown_has_a_page_without_a_date() {
        let shown = Command::new("shell").about("znodes by hand").subcommand(Command::new("deep"));
        let command = Command::new("ostler").version("1.2.3").subcommand(shown);
        let command = command.subcommand(Command::new("secret").hide(true));
        let pages = pages(&command, None);
        let names: Vec<&str> = pages.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["ostler", "ostler-shell", "ostler-shell-deep"]);
        let text = String::from_utf8(pages[1].1.clone()).unwrap();
        assert!(text.contains(".TH ostler-shell 1  \"ostler-shell ") , "{text}");
        assert!(text.contains("znodes by hand"), "{text}");
    }
}
