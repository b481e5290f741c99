use super::*;
use crate::tree::test_site::TestSite;

/// The deletions of these znodes as they are now.
fn deletions(site: &TestSite, paths: &[&str]) -> Vec<Deletion> {
    let czxid = |path: &str| look(&site.console, |server| server.tree().get(path).unwrap().stat.czxid);
    let deletion = |path: &&str| Deletion { path: (*path).into(), czxid: czxid(path), version: -1 };
    paths.iter().map(deletion).collect()
}

/// The connection was lost with the answer, so nobody knows whether the znodes were deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_delete_is_not_repeated_on_znodes_that_were_created_anew() {
    let site = TestSite::start().await;
    let client = site.client(&site.caller().await).await;
    for path in ["/a", "/a/b", "/a/c"] {
        client.create(path, b"").await.unwrap();
    }
    let mut ops = deletions(&site, &["/a/b", "/a/c", "/a"]);
    let run = site.run(3);
    assert_eq!(left(&site.console, &client, &run, &mut ops).await.unwrap(), Some(3), "none was deleted");
    for path in ["/a/b", "/a/c"] {
        client.delete(path).await.unwrap();
    }
    client.create("/a/c", b"new").await.unwrap();
    let refused = left(&site.console, &client, &run, &mut ops).await.unwrap_err();
    assert_eq!((&*refused.path, refused.sentence.contains("created anew")), ("/a/c", true), "{refused:?}");
    assert_eq!(&client.get_data("/a/c").await.unwrap().0[..], b"new");
    client.delete("/a/c").await.unwrap();
    assert_eq!(left(&site.console, &client, &run, &mut ops).await.unwrap(), Some(1));
    assert_eq!(
        (&*ops[0].path, run.state()["done"].as_u64()),
        ("/a", Some(2)),
        "those that are gone are done"
    );
}
