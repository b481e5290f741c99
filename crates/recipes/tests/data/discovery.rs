//! Discovery of services.

use crate::{
    servers::Servers,
    world::{World, at_every_cut, with_expiry_after_every_request, within},
};
use ostler_client::{AddWatchMode, Client, EventKind};
use ostler_recipes::discovery::{
    DiscoveryError, DownInstancePolicy, RoundRobin, ServiceDiscovery, ServiceInstance, ServiceType, Sticky,
};
use std::{slice, time::Duration};

type Services = ServiceDiscovery<String>;

fn services(client: &Client) -> Services {
    ServiceDiscovery::new(client, "/deep/services")
}

fn instance(name: &str, id: &str) -> ServiceInstance<String> {
    ServiceInstance { id: id.to_owned(), ..ServiceInstance::new(name, "10.0.0.1", 80) }
}

fn path(name: &str, id: &str) -> String {
    format!("/deep/services/{name}/{id}")
}

pub(crate) async fn register_and_find<S: Servers>(world: &World<S>) {
    let (here, there) = (services(&world.client), services(&world.other));
    assert_eq!(there.names().await.unwrap(), [""; 0]);
    let mut one = instance("api", "one");
    here.register(one.clone()).await.unwrap();
    one.payload = Some("changed".into());
    here.update(&one).await.unwrap();
    world.let_other_see().await;
    assert_eq!(there.names().await.unwrap(), ["api"]);
    assert_eq!(there.instances("api").await.unwrap(), [one.clone()]);
    there.register(instance("api", "two")).await.unwrap();
    world.let_client_see().await;
    let provider = here.provider("api").start().await.unwrap();
    let mut changes = provider.cache().changes();
    // At a leader that does not know yet that it is none it can be behind, and hears of it.
    while provider.all_instances().len() != 2 {
        changes.next().await.unwrap();
    }
    there.unregister("api", "two").await.unwrap();
    let again = there.unregister("api", "two").await;
    assert!(matches!(again, Err(DiscoveryError::NotRegistered { .. })), "{again:?}");
    while provider.all_instances().len() != 1 {
        changes.next().await.unwrap();
    }
    assert_eq!(provider.instance().unwrap().payload.as_deref(), Some("changed"));
    drop(provider);
    here.close().await;
    world.let_other_see().await;
    assert!(there.instances("api").await.unwrap().is_empty());
}

#[tokio::test]
async fn services_survive_a_cut_at_every_message() {
    at_every_cut(register_and_find).await;
}

/// Its session ends once more when all is done.
pub(crate) async fn come_back<S: Servers>(world: &World<S>) {
    let here = services(&world.client);
    here.register(instance("api", "one")).await.unwrap();
    let changed = ServiceInstance { payload: Some("changed".into()), ..instance("api", "one") };
    here.update(&changed).await.unwrap();
    world.let_other_see().await;
    let (_, gone) = world.other.exists(&path("api", "one")).watch().await.unwrap();
    world.expire().await;
    gone.await.unwrap();
    let provider = services(&world.other).provider("api").start().await.unwrap();
    let mut changes = provider.cache().changes();
    while provider.instance().is_none() {
        changes.next().await.unwrap();
    }
    assert_eq!(provider.instance().unwrap().payload.as_deref(), Some("changed"));
    drop(provider);
    here.close().await;
    world.let_other_see().await;
    assert_eq!(services(&world.other).instances("api").await.unwrap(), []);
}

/// CURATOR-146, CURATOR-181: after the end of a session the last update is registered, not the first instance.
#[tokio::test]
async fn curator_181_the_last_update_is_registered_again() {
    with_expiry_after_every_request(come_back).await;
}

/// CURATOR-320: a reconnect deletes nothing and creates nothing.
#[tokio::test]
async fn curator_320_a_reconnect_leaves_services_alone() {
    let world = World::new().await;
    let here = services(&world.client);
    here.register(instance("api", "one")).await.unwrap();
    let before = world.other.exists(&path("api", "one")).await.unwrap();
    for _ in 0..3 {
        world.proxy.cut_now();
        world.client.sync("/").await.unwrap();
    }
    assert_eq!(world.other.exists(&path("api", "one")).await.unwrap(), before);
}

/// CURATOR-164: what is unregistered while the connection comes back stays unregistered.
#[tokio::test]
async fn curator_164_unregistered_instance_does_not_come_back() {
    let world = World::new().await;
    for round in 0..10 {
        let here = services(&world.client);
        here.register(instance("api", "one")).await.unwrap();
        if round % 2 == 0 {
            world.expire().await;
        } else {
            world.proxy.cut_now();
        }
        within(here.unregister("api", "one")).await.unwrap();
        assert!(world.other.exists(&path("api", "one")).await.unwrap().is_none());
    }
    within(world.no_ephemerals()).await;
}

/// CURATOR-617: unregistering while there is no connection takes effect after it; nobody has to try again.
#[tokio::test]
async fn curator_617_unregistered_without_a_connection() {
    let world = World::new().await;
    let here = services(&world.client);
    here.register(instance("api", "one")).await.unwrap();
    let (_, gone) = world.other.exists(&path("api", "one")).watch().await.unwrap();
    world.proxy.block();
    let dropped = tokio::time::timeout(Duration::from_millis(30), here.unregister("api", "one")).await;
    assert!(dropped.is_err());
    world.proxy.heal();
    within(gone).await.unwrap();
}

/// CURATOR-175: what is registered while there is no server is registered when there is one.
#[tokio::test]
async fn curator_175_registered_before_there_is_a_connection() {
    let world = World::new().await;
    world.proxy.block();
    let here = services(&world.client);
    let registering = here.register(instance("api", "one"));
    let healing = async {
        assert!(services(&world.other).instances("api").await.unwrap().is_empty());
        world.proxy.heal();
    };
    let (registered, ()) = within(async { tokio::join!(registering, healing) }).await;
    registered.unwrap();
    assert_eq!(services(&world.other).instances("api").await.unwrap().len(), 1);
}

/// CURATOR-574: data that is no instance, empty data above all, is left out and stops nobody.
#[tokio::test]
async fn curator_574_data_that_is_no_instance_is_left_out() {
    let world = World::new().await;
    let here = services(&world.client);
    world.other.create(&path("api", "empty"), b"").creating_parents().await.unwrap();
    world.other.create(&path("api", "bad"), b"{]").await.unwrap();
    here.register(instance("api", "good")).await.unwrap();
    assert_eq!(here.instances("api").await.unwrap().len(), 1);
    let refused = here.instance("api", "empty").await.map_err(|error| error.clone());
    assert!(matches!(refused, Err(DiscoveryError::NotAnInstance { .. })));
    assert!(here.instance("api", "none").await.unwrap().is_none());
    let provider = here.provider("api").start().await.unwrap();
    assert_eq!(provider.all_instances().len(), 1);
    let unknown = here.update(&instance("api", "other")).await;
    assert!(matches!(unknown, Err(DiscoveryError::NotRegistered { .. })));
}

#[tokio::test]
async fn providers_choose() {
    let world = World::new().await;
    let here = services(&world.client);
    for id in ["a", "b", "c", "d"] {
        here.register(instance("api", id)).await.unwrap();
    }
    here.register(ServiceInstance { enabled: false, ..instance("api", "off") }).await.unwrap();
    let policy = DownInstancePolicy { timeout: Duration::from_secs(3600), error_threshold: 2 };
    let provider = here
        .provider("api")
        .strategy(Sticky::new(RoundRobin::default()))
        .filter(|instance| instance.id != "d")
        .down_instances(policy)
        .start()
        .await
        .unwrap();
    let first = provider.instance().unwrap();
    assert_eq!((first.id.as_str(), provider.all_instances().len()), ("a", 3));
    assert_eq!(provider.instance(), Some(first.clone()));
    provider.note_error(&first);
    assert_eq!(provider.instance(), Some(first.clone()));
    provider.note_error(&first);
    assert_ne!(provider.instance().unwrap().id, "a");
    assert_eq!(provider.all_instances().len(), 2);
    assert_eq!(provider.cache().instances().len(), 5);
    within(provider.close()).await;
    assert_eq!(provider.all_instances().len(), 2, "those that it knew last");
    within(here.close()).await;
    within(world.end()).await;
}

#[tokio::test]
async fn each_type_stays_as_long_as_it_should() {
    let world = World::new().await;
    let here = services(&world.client);
    for (id, kind) in
        [("s", ServiceType::Static), ("p", ServiceType::Permanent), ("q", ServiceType::DynamicSequential)]
    {
        here.register(ServiceInstance { service_type: kind, ..instance("api", id) }).await.unwrap();
    }
    assert_eq!(world.server.counts().unwrap().ephemerals, 1);
    assert_eq!(here.instances("api").await.unwrap().len(), 3);
    here.unregister("api", "q").await.unwrap();
    within(world.no_ephemerals()).await;
    drop(here);
    let (_, mut changed) = world.other.get_children("/deep/services/api").watch().await.unwrap();
    while !world.other.get_children("/deep/services/api").await.unwrap().is_empty() {
        within(changed).await.unwrap();
        changed = world.other.get_children("/deep/services/api").watch().await.unwrap().1;
    }
}

#[tokio::test]
async fn one_id_in_two_services() {
    let world = World::new().await;
    let here = services(&world.client);
    let (api, admin) = (instance("api", "one"), instance("admin", "one"));
    here.register(api.clone()).await.unwrap();
    here.register(admin.clone()).await.unwrap();
    world.let_other_see().await;
    let there = services(&world.other);
    assert_eq!(there.instances("api").await.unwrap(), [api]);
    assert_eq!(there.instances("admin").await.unwrap(), slice::from_ref(&admin));
    here.unregister("api", "one").await.unwrap();
    world.let_other_see().await;
    assert_eq!(there.instances("api").await.unwrap(), []);
    assert_eq!(there.instances("admin").await.unwrap(), [admin]);
    within(here.close()).await;
    within(world.end()).await;
}

#[tokio::test]
async fn an_instance_that_is_registered_again_can_have_another_type() {
    let world = World::new().await;
    let here = services(&world.client);
    for (service_type, is_ephemeral) in
        [(ServiceType::Dynamic, true), (ServiceType::Static, false), (ServiceType::Dynamic, true)]
    {
        let one = ServiceInstance { service_type, ..instance("api", "one") };
        within(here.register(one.clone())).await.unwrap();
        world.let_other_see().await;
        assert_eq!(services(&world.other).instances("api").await.unwrap(), [one]);
        let stat = world.other.exists(&path("api", "one")).await.unwrap().unwrap();
        assert_eq!(stat.ephemeral_owner != 0, is_ephemeral, "{service_type:?}");
    }
    within(here.close()).await;
    within(world.end()).await;
}

#[tokio::test]
async fn registered_again_while_it_is_unregistered() {
    let world = World::new().await;
    let here = services(&world.client);
    here.register(instance("api", "one")).await.unwrap();
    let mut events = world.other.add_watch(&path("api", "one"), AddWatchMode::Persistent).await.unwrap();
    let changed = ServiceInstance { payload: Some("changed".into()), ..instance("api", "one") };
    let (was_there, again) =
        within(async { tokio::join!(here.unregister("api", "one"), here.register(changed.clone())) }).await;
    was_there.unwrap();
    again.unwrap();
    for expected in [EventKind::NodeDeleted, EventKind::NodeCreated] {
        assert_eq!(within(events.next()).await.unwrap().kind, expected);
    }
    assert_eq!(services(&world.other).instances("api").await.unwrap(), [changed]);
    within(here.close()).await;
    drop(events);
    within(world.end()).await;
}
