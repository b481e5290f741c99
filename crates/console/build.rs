//! Compresses the assets, and makes the list of them.

use flate2::{Compression, write::GzEncoder};
use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("assets");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo::rerun-if-changed={}", root.display());
    let mut names = Vec::new();
    walk(&root, &root, &mut names)?;
    names.sort();
    let mut list = String::from("&[\n");
    for (number, name) in names.iter().enumerate() {
        let text = fs::read_to_string(root.join(name))?;
        // Other people's files keep their notices.
        let text = if name.starts_with("vendor/") { text } else { without_comments(&text) };
        let (plain, packed) = (out.join(format!("{number}.plain")), out.join(format!("{number}.gz")));
        fs::write(&plain, &text)?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text.as_bytes())?;
        fs::write(&packed, encoder.finish()?)?;
        writeln!(
            list,
            "    Asset {{ name: {name:?}, plain: include_bytes!({:?}), gzip: include_bytes!({:?}) }},",
            plain.display().to_string(),
            packed.display().to_string()
        )?;
    }
    list.push_str("]\n");
    fs::write(out.join("assets.rs"), list)?;
    Ok(())
}

/// A module or a style sheet without the lines that are comments, without the types in other lines, and without indentation.
/// No line of a template begins like a comment: a test of the assets sees to that.
fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_comment = false;
    for line in text.lines().map(str::trim) {
        is_comment |= line.starts_with("/*");
        if is_comment {
            is_comment = !line.ends_with("*/");
        } else if !line.is_empty() && !line.starts_with("//") {
            push_without_types(&mut out, line);
            out.push('\n');
        }
    }
    out
}

/// Types are comments like `/** @type {string} */`.
fn push_without_types(out: &mut String, line: &str) {
    let mut rest = line;
    while let Some((before, (_, after))) =
        rest.split_once("/** @").and_then(|(before, type_)| Some((before, type_.split_once("*/")?)))
    {
        out.push_str(before);
        rest = after.trim_start();
    }
    out.push_str(rest);
}

/// The files of a folder that browsers load, as paths below the root.
fn walk(root: &Path, folder: &Path, names: &mut Vec<String>) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(root, &path, names)?;
            continue;
        }
        let served = ["html", "js", "css", "svg", "json"];
        if path.extension().is_some_and(|end| served.iter().any(|kind| end == *kind)) {
            println!("cargo::rerun-if-changed={}", path.display());
            names.push(path.strip_prefix(root)?.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}
