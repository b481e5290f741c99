//! Creates the znodes that a workload needs, and deletes them at the end.

use super::{
    error::{BenchError, Result},
    session::Session,
    template::{self, Path, Template},
};
use ostler_proto::{error::ErrorCode, jute::Reader, op::Op};

/// Creates every znode of `path` that does not exist.
pub(crate) fn make_parents(session: &mut Session, path: &str) -> Result<()> {
    let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
    for end in ends {
        let path = &path[..end];
        let (code, _) = session.call(&template::create(&Path::fixed(path), b""))?;
        if code != 0 && code != ErrorCode::NodeExists.code() {
            return Err(BenchError::Setup { what: "create", path: path.to_owned(), code });
        }
    }
    Ok(())
}

/// Creates `count` znodes with `value`, or sets it if they exist. `path` has a place for their number.
pub(crate) fn make_keys(session: &mut Session, path: &Path, count: u32, value: &[u8]) -> Result<()> {
    let setup = |what, code| BenchError::Setup { what, path: "of a key".to_owned(), code };
    let create = template::create(path, value);
    let codes = session.call_all((0..count).map(|number| (&create, [number, 0])))?;
    let exists = ErrorCode::NodeExists.code();
    if let Some(&code) = codes.iter().find(|&&code| code != 0 && code != exists) {
        return Err(setup("create", code));
    }
    let set = template::set_data(path, value);
    let old = (0..count).zip(&codes).filter(|&(_, &code)| code == exists);
    let codes = session.call_all(old.map(|(number, _)| (&set, [number, 0])))?;
    codes.into_iter().find(|&code| code != 0).map_or(Ok(()), |code| Err(setup("set", code)))
}

/// Deletes `path` and all that is below it.
pub(crate) fn remove(session: &mut Session, path: &str) -> Result<()> {
    let children = children_of(session, path)?;
    let child_path = |name: &String| format!("{path}/{name}");
    // Most children have no children: all are deleted at once. The others are left for a second pass.
    let deletes: Vec<Template> =
        children.iter().map(|name| template::delete(&Path::fixed(child_path(name)))).collect();
    let codes = session.call_all(deletes.iter().map(|delete| (delete, [0, 0])))?;
    for (name, code) in children.iter().zip(codes) {
        if code == ErrorCode::NotEmpty.code() {
            remove(session, &child_path(name))?;
        }
    }
    session.call(&template::delete(&Path::fixed(path)))?;
    Ok(())
}

fn children_of(session: &mut Session, path: &str) -> Result<Vec<String>> {
    let (code, body) = session.call(&template::read(Op::GetChildren, &Path::fixed(path), false))?;
    if code != 0 {
        return Ok(Vec::new());
    }
    let names = Reader::new(&body).vector(|r| Ok(r.text()?.into_owned()))?;
    Ok(names.unwrap_or_default())
}
