use super::*;
use crate::tree::test_site::TestSite;
use ostler_proto::acl::Id;

/// Somebody else sets an ACL between the look at a znode and its change.
#[tokio::test(flavor = "multi_thread")]
async fn an_acl_that_was_changed_since_it_was_seen_is_kept() {
    let site = TestSite::start().await;
    let client = site.client(&site.caller().await).await;
    for path in ["/a", "/a/b", "/a/c"] {
        client.create(path, b"").await.unwrap();
    }
    let caller = site.caller().await;
    let mut batches =
        Batches::begin(&site.console, &caller, walk("/a", WalkOrder::ChildrenFirst)).map_err(drop).unwrap();
    let seen = batches.next(&site.console).await.unwrap();
    assert_eq!(seen.len(), 3);
    let theirs = [Acl { perms: Perms(Perms::READ.0 | Perms::ADMIN.0), id: Id::new("world", "anyone") }];
    client.set_acl("/a/c", &theirs).await.unwrap();
    let plan = Plan::of_acls("/a", seen.len());
    let whole = Whole { console: site.console.clone(), caller, plan, run: site.run(3) };
    let mine = [Acl { perms: Perms(Perms::CREATE.0 | Perms::ADMIN.0), id: Id::new("world", "anyone") }];
    let refused = whole.set_acls(&seen, &mine).await.unwrap_err();
    assert_eq!(
        (&*refused.path, &*refused.sentence),
        ("/a/c", "The ACL was changed meanwhile. Load it anew.")
    );
    assert_eq!(client.get_acl("/a/c").await.unwrap().0, theirs);
    assert_eq!(client.get_acl("/a/b").await.unwrap().0, mine);
}
