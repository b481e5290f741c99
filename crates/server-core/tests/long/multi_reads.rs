//! A multiRead of many operations shows one moment, and takes the member for no longer than anything else.

use crate::{
    member::{Client, Member},
    sight::Sight,
    wire::{children, create, get, set},
    work::{A_HOLD, multi_read},
};
use ostler_proto::{
    error::ErrorCode,
    id::Xid,
    reply::{Body, OpResult, Reply},
};

const MANY: usize = 20_000;

fn with_data(data: &[u8]) -> (Member, Client, Client) {
    let mut m = Member::new();
    let (a, b) = (m.join(), m.join());
    m.ask(a, create("/a").data(data)).unwrap();
    m.forget();
    m.take_costliest();
    (m, a, b)
}

/// The answer of each operation in a multiRead, as text.
fn shown(m: &mut Member, client: Client, xid: Xid) -> Vec<String> {
    let Ok(Body::Multi(results)) = m.reply(client, xid).result else { panic!("it is answered") };
    let data = results.iter().map(|result| match result {
        OpResult::GetData(Some(data), _) => String::from_utf8(data.to_vec()).unwrap(),
        OpResult::GetChildren(names) => format!("{} bytes of names", names.size()),
        other => format!("{other:?}"),
    });
    data.collect()
}

#[test]
fn a_multi_read_shows_one_zxid_whatever_commits_meanwhile() {
    let (mut m, a, b) = with_data(b"old");
    let asked = m.send(a, multi_read(&vec![get("/a"); MANY]));
    assert!(m.server.has_backlog());
    let written = m.send(b, set("/a", b"new"));
    m.disk_does(usize::MAX);
    assert_eq!(m.data("/a").as_deref(), Some("old"), "what is decided is not applied yet");
    let read = m.send(b, get("/none"));
    m.go_on();
    assert!(m.take_costliest() <= A_HOLD);
    assert_eq!(shown(&mut m, a, asked), vec!["old"; MANY]);
    assert!(m.reply(b, written).result.is_ok());
    assert_eq!(m.reply(b, read).result, Err(ErrorCode::NoNode));
    assert_eq!(m.data("/a").as_deref(), Some("new"));
}

#[test]
fn its_client_is_answered_in_order() {
    let (mut m, a, _) = with_data(b"0");
    let (mut asked, mut written) = (Vec::new(), Vec::new());
    for n in 1..=4 {
        asked.push(m.send(a, multi_read(&[vec![get("/a"); MANY], vec![children("/")]].concat())));
        written.push(m.send(a, set("/a", n.to_string().as_bytes())));
    }
    m.flush();
    assert!(m.take_costliest() <= A_HOLD);
    let order: Vec<Xid> = m.sights.iter().filter_map(|(_, sight)| xid_of(sight)).collect();
    let expected: Vec<Xid> = asked.iter().zip(&written).flat_map(|(read, write)| [*read, *write]).collect();
    assert_eq!(order, expected);
    for (n, xid) in asked.into_iter().enumerate() {
        let shown = shown(&mut m, a, xid);
        assert_eq!(shown[..MANY], vec![n.to_string(); MANY]);
        assert!(shown[MANY].ends_with("bytes of names"));
    }
}

fn xid_of(sight: &Sight) -> Option<Xid> {
    match sight {
        Sight::Reply(reply) => Some(reply.xid),
        _ => None,
    }
}

/// Each of them would go on with the next as soon as one is done.
#[test]
fn transactions_have_their_turn_between_two() {
    let (mut m, a, b) = with_data(b"old");
    let clients: Vec<Client> = (0..5).map(|_| m.join()).collect();
    let asked: Vec<_> =
        clients.iter().map(|client| (*client, m.send(*client, multi_read(&vec![get("/a"); MANY])))).collect();
    let written = m.send(b, set("/a", b"new"));
    m.disk_does(usize::MAX);
    m.flush();
    assert!(m.take_costliest() <= A_HOLD && m.reply(b, written).result.is_ok());
    let shown: Vec<_> = asked.into_iter().map(|(client, xid)| shown(&mut m, client, xid)).collect();
    let of = |data| shown.iter().filter(|shown| **shown == vec![data; MANY]).count();
    assert_eq!((of("old"), of("new")), (1, 4), "one was under way, and the write came next");
    m.ask(a, get("/a")).unwrap();
}

#[test]
fn a_multi_read_of_a_closed_connection_holds_up_nothing() {
    for closes in [false, true] {
        let (mut m, a, b) = with_data(b"old");
        m.send(a, multi_read(&vec![get("/a"); MANY]));
        match closes {
            false => m.hang_up(a),
            true => m.step(ostler_server_core::Input::CloseConnection(a.conn)),
        }
        m.ask(b, set("/a", b"new")).unwrap();
        assert_eq!(shown_by_one(&mut m, b), ["new"]);
        let asked = m.send(b, multi_read(&vec![get("/a"); MANY]));
        m.flush();
        assert_eq!(shown(&mut m, b, asked), vec!["new"; MANY]);
    }
}

fn shown_by_one(m: &mut Member, client: Client) -> Vec<String> {
    let asked = m.send(client, multi_read(&[get("/a")]));
    shown(m, client, asked)
}

#[test]
fn an_answer_that_no_frame_holds_is_refused_and_a_broken_one_breaks_off() {
    let (mut m, a, _) = with_data(&vec![7; 100_000]);
    let asked = m.send(a, multi_read(&vec![get("/a"); 1000]));
    m.flush();
    assert_eq!(m.reply(a, asked).result, Err(ErrorCode::MarshallingError));
    let asked = m.send(a, multi_read(&vec![get("/none"); 1000]));
    m.flush();
    let Reply { result: Ok(Body::Multi(results)), .. } = m.reply(a, asked) else { panic!("it is answered") };
    assert_eq!(results, vec![OpResult::Error(ErrorCode::NoNode.code()); 1000]);
    // The last has no path.
    let mut ask = multi_read(&vec![get("/none"); 1001]);
    let path = b"/none";
    let last = ask.body.windows(path.len()).rposition(|bytes| bytes == path).unwrap();
    ask.body.splice(last - 4..last + path.len(), (-1_i32).to_be_bytes());
    let asked = m.send(a, ask);
    m.flush();
    let Reply { result: Ok(Body::BrokenMultiRead(results)), .. } = m.reply(a, asked) else {
        panic!("it breaks off")
    };
    assert_eq!(results.len(), 1000);
}
