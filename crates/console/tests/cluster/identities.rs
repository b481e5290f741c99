//! The ways in which a server may ask another one whose pages are not for everybody.

use crate::members::{Ensemble, PATIENCE, Ports, get, get_as, row};
use ostler_client::{Acl, Client, Id, Perms};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use serde_json::Value;
use std::{fs, path::Path, time::Instant};

/// ann, with the password secret.
const ANN: &str = "digest:ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=";
const AS_ANN: Option<&str> = Some("digest ann:secret");

/// Files of TLS whose certificate is for this host.
fn files(folder: &Path, host: &str) -> String {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "authority");
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
    params.distinguished_name.push(DnType::CommonName, "member");
    let key = KeyPair::generate().unwrap();
    let chain = params.signed_by(&key, &issuer).unwrap().pem();
    let (store, trust) = (folder.join("member.pem"), folder.join("ca.pem"));
    fs::write(&store, key.serialize_pem() + &chain).unwrap();
    fs::write(&trust, authority).unwrap();
    format!(
        "ssl.quorum.keyStore.location={}\nssl.quorum.trustStore.location={}\nssl.quorum.hostnameVerification=false\n",
        store.display(),
        trust.display()
    )
}

/// Two members whose pages are for ann alone, and the first one's page once the other has answered, or has refused.
async fn page_of_two(lines: &str) -> Value {
    let mut ensemble = Ensemble::prepare(2, lines);
    ensemble.start_member(1).await;
    ensemble.start_member(2).await;
    let begun = Instant::now();
    loop {
        assert_eq!(get(ensemble.admin(1), "ensemble").await.0, 401, "not for others");
        let (status, page) = get_as(ensemble.admin(1), "ensemble", AS_ANN).await;
        assert_eq!(status, 200);
        let reason = row(&page, 2)["reason"].as_str().unwrap_or_default();
        if !reason.contains("Connection refused") {
            return page;
        }
        assert!(begun.elapsed() < PATIENCE, "{page:#}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_with_the_certificate_of_its_host_sees_what_viewers_see() {
    let folder = tempfile::tempdir().unwrap();
    let tls = "admin.portUnification=true\nadmin.needClientAuth=true\n";
    let page = page_of_two(&format!("admin.viewers={ANN}\n{tls}{}", files(folder.path(), "127.0.0.1"))).await;
    assert_eq!(
        (row(&page, 2)["state"].as_str(), row(&page, 2)["reason"].is_null()),
        (Some("answered"), true),
        "{page:#}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_another_host_shows_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let tls = "admin.portUnification=true\nadmin.needClientAuth=true\n";
    for host in ["10.9.9.9", "*.example.com"] {
        let page = page_of_two(&format!("admin.viewers={ANN}\n{tls}{}", files(folder.path(), host))).await;
        let reason = row(&page, 2)["reason"].as_str().unwrap();
        assert!(reason.contains("needs an identity: "), "{host}: {reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_tls_a_member_needs_an_identity_and_its_words_tell_the_rest() {
    let page = page_of_two(&format!("admin.viewers={ANN}\n")).await;
    let two = row(&page, 2);
    assert!(two["reason"].as_str().unwrap().contains("needs an identity: "), "{two:#}");
    assert_eq!((two["state"].as_str(), two["kind"].is_string()), (Some("answered"), true), "{two:#}");
}

/// Whoever asks a server without an identity must not see by that server's certificate and address what these may read.
#[tokio::test(flavor = "multi_thread")]
async fn the_identities_of_a_member_show_nothing_to_those_who_ask_it() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path(), "127.0.0.1");
    // An ACL can have the name of a certificate only where clients come by TLS.
    let tls = "admin.portUnification=true\nadmin.needClientAuth=true\nslowRequestThresholdMs=0\n";
    let mut ensemble = Ensemble::prepare(2, &format!("{tls}{files}{}", files.replace("ssl.quorum.", "ssl.")));
    for id in 1..=2 {
        ensemble.start_member_with(id, &format!("secureClientPort={}", Ports::free().clients)).await;
    }
    ensemble.until_led(2).await;
    let client = Client::connect(&format!("127.0.0.1:{}", ensemble.ports[1].clients)).await.unwrap();
    for (parent, id) in
        [("/by-name", Id::new("x509", "CN=member")), ("/by-address", Id::new("ip", "127.0.0.1"))]
    {
        client.create(parent, b"").await.unwrap();
        client.create(&format!("{parent}/child"), b"").await.unwrap();
        client.set_acl(parent, &[Acl { perms: Perms::READ, id }]).await.unwrap();
    }
    let has_both = |page: &Value| {
        let text = page.to_string();
        text.contains("/by-name/") && text.contains("/by-address/")
    };
    let (_, page) = ensemble.until(1, "slow?limit=1000", has_both).await;
    assert!(page.to_string().contains("/by-name/...") && page.to_string().contains("/by-address/..."));
    assert!(!page.to_string().contains("/child"), "{page:#}");
    // A caller who comes from that address may read there.
    let (_, own) = get(ensemble.admin(2), "slow?limit=1000&local=1").await;
    assert!(own.to_string().contains("/by-address/child"), "{own}");
}
