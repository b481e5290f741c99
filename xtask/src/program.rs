//! Runs programs. Their output goes to one log file per step, where it can be followed.

use anyhow::{Context, Result};
use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Runs the programs of one step.
pub(crate) struct Runner<'a> {
    checkout: &'a Path,
    log: PathBuf,
    /// Whether programs get only the time that others leave.
    is_nice: bool,
}

/// How a program ended.
pub(crate) struct Finished {
    pub(crate) success: bool,
    /// The exit code; `None` after a signal.
    pub(crate) code: Option<i32>,
    /// The output of the program, standard output and error together.
    pub(crate) output: String,
    /// How it ended, in words, for the step's line.
    pub(crate) status: String,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(checkout: &'a Path, step: &str) -> Runner<'a> {
        Runner { checkout, log: checkout.join("target/xtask").join(format!("{step}.log")), is_nice: false }
    }

    /// Lets programs use only the time that others leave, where there is `nice`.
    pub(crate) fn nice(self) -> Runner<'a> {
        Runner { is_nice: is_installed("nice"), ..self }
    }

    pub(crate) fn checkout(&self) -> &Path {
        self.checkout
    }

    pub(crate) fn cargo(&self, arguments: &[&str]) -> Result<Finished> {
        self.run(Command::new(cargo_program()).args(arguments))
    }

    pub(crate) fn cargo_with(&self, variable: (&str, &str), arguments: &[&str]) -> Result<Finished> {
        self.run(Command::new(cargo_program()).args(arguments).env(variable.0, variable.1))
    }

    /// Starts a program in the checkout, without input.
    pub(crate) fn start(&self, command: &mut Command) -> Result<Child> {
        if let Some(folder) = self.log.parent() {
            fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let in_log = || format!("cannot write to {}", self.log.display());
        let log = File::create(&self.log).with_context(in_log)?;
        let command = if self.is_nice { &mut nice(command) } else { command };
        command
            .current_dir(self.checkout)
            .stdin(Stdio::null())
            .stdout(log.try_clone().with_context(in_log)?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot run {}", command.get_program().display()))
    }

    /// Runs a program to its end.
    pub(crate) fn run(&self, command: &mut Command) -> Result<Finished> {
        let status = self
            .start(command)?
            .wait()
            .with_context(|| format!("cannot run {}", command.get_program().display()))?;
        let output = fs::read(&self.log).with_context(|| format!("cannot read {}", self.log.display()))?;
        let output = String::from_utf8_lossy(&output).into_owned();
        Ok(Finished { success: status.success(), code: status.code(), output, status: status.to_string() })
    }
}

/// The same program with low priority.
fn nice(command: &Command) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"]).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => nice.env(name, value),
            None => nice.env_remove(name),
        };
    }
    nice
}

/// The cargo that runs this program, so that the toolchain is the same.
pub(crate) fn cargo_program() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Whether a program is on the path.
pub(crate) fn is_installed(name: &str) -> bool {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders).any(|folder| folder.join(name).is_file())
}
