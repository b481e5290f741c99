//! Checks the Python programs by ruff and mypy, whose rules are in pyproject.toml. Pip installs both into a folder below
//! target/.

use crate::{
    outcome::Outcome,
    program::{Finished, Runner, is_installed},
};
use anyhow::{Context, Result};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

const RUFF: &str = "ruff==0.17.6";
const MYPY: &str = "mypy==2.4.1";
/// The file that shows that the installation is complete.
const INSTALLED: &str = "installed";

/// Runs the checks of lint, format and types. They are skipped on a machine where pip cannot install the tools.
pub(crate) fn check(runner: &Runner<'_>) -> Result<Outcome> {
    if !is_installed("python3") {
        return Ok(Outcome::skipped("there is no python3 on this machine"));
    }
    let tools = tools_folder(runner);
    if let Some(failed) = install(runner, &tools)? {
        return Ok(Outcome::skipped(format!("pip cannot install {RUFF} and {MYPY}: {}", last_line(&failed))));
    }
    let checks: [(&str, &[&str]); 3] = [
        ("ruff", &["check", "--quiet", "."]),
        ("ruff", &["format", "--quiet", "--check", "--diff", "."]),
        ("mypy", &[]),
    ];
    for (program, arguments) in checks {
        let finished = runner.run(Command::new(tools.join("bin").join(program)).args(arguments))?;
        if !finished.success {
            let words = [&[program], arguments].concat().join(" ");
            return Ok(Outcome::failed(format!("{words}: {}", finished.status), finished.output));
        }
    }
    Ok(Outcome::ok(format!("{RUFF}, {MYPY}")))
}

/// The folder has the versions in its name, so that another version is installed anew.
fn tools_folder(runner: &Runner<'_>) -> PathBuf {
    runner.checkout().join("target/python").join(format!("{RUFF}-{MYPY}").replace("==", "-"))
}

/// Installs the tools if they are not there yet. Returns the program that has failed.
fn install(runner: &Runner<'_>, tools: &Path) -> Result<Option<Finished>> {
    let stamp = tools.join(INSTALLED);
    if stamp.is_file() {
        return Ok(None);
    }
    let made = runner.run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(tools))?;
    if !made.success {
        return Ok(Some(made));
    }
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", RUFF, MYPY];
    let installed = runner.run(Command::new(tools.join("bin/python")).args(pip))?;
    if !installed.success {
        return Ok(Some(installed));
    }
    fs::write(&stamp, "").with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(None)
}

fn last_line(finished: &Finished) -> &str {
    finished.output.lines().rfind(|line| !line.trim().is_empty()).unwrap_or(&finished.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skip_names_the_last_line_of_what_failed() {
        let finished = |output: &str| Finished {
            success: false,
            code: Some(1),
            output: output.to_owned(),
            status: "exit status: 1".to_owned(),
        };
        assert_eq!(last_line(&finished("trying\nno network\n\n")), "no network");
        assert_eq!(last_line(&finished("")), "exit status: 1");
    }
}
