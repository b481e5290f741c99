//! The quotas of all namespaces, for metrics.

use crate::server::Server;
use alloc::{collections::BTreeMap, string::String, vec::Vec};
use ostler_proto::path;
use ostler_tree::quota::{QuotaNode, QuotaNumbers, classify};

/// The sums of all quotas in one namespace; `None` if no quota has such a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NamespaceQuota {
    /// The limit of znodes: of each quota the hard limit, or the soft one if there is none.
    pub count_limit: Option<i64>,
    /// The limit of bytes, in the same way.
    pub bytes_limit: Option<i64>,
    /// The number of znodes.
    pub count_usage: Option<i64>,
    /// The number of bytes.
    pub bytes_usage: Option<i64>,
}

impl NamespaceQuota {
    fn add(&mut self, of: &QuotaNode<'_>, numbers: QuotaNumbers) {
        // A client can write any number here.
        let add = |sum: &mut Option<i64>, number: i64| *sum = Some(sum.unwrap_or(0).wrapping_add(number));
        let limit = |hard: i64, soft: i64| if hard > -1 { hard } else { soft };
        match of {
            QuotaNode::Limits(_) => {
                add(&mut self.count_limit, limit(numbers.count_hard, numbers.count));
                add(&mut self.bytes_limit, limit(numbers.bytes_hard, numbers.bytes));
            }
            QuotaNode::Stats(_) => {
                add(&mut self.count_usage, numbers.count);
                add(&mut self.bytes_usage, numbers.bytes);
            }
        }
    }
}

/// A walk over the znodes of quotas, in parts: clients may create very many.
#[derive(Debug)]
pub struct QuotaWalk {
    /// Limits and usage by namespace, as far as the walk has come.
    pub found: BTreeMap<String, NamespaceQuota>,
    /// Znodes that are left, each with the last of its children that is done.
    rest: Vec<(String, Option<String>)>,
}

impl Default for QuotaWalk {
    fn default() -> QuotaWalk {
        QuotaWalk { found: BTreeMap::new(), rest: Vec::from([(String::from(path::QUOTA_ROOT), None)]) }
    }
}

/// Namespaces above this number are left out: clients can make very many.
const NAMESPACES_MAX: usize = 1_000;

impl QuotaWalk {
    fn add(&mut self, namespace: &str, of: &QuotaNode<'_>, numbers: QuotaNumbers) {
        if self.found.len() < NAMESPACES_MAX || self.found.contains_key(namespace) {
            self.found.entry(namespace.into()).or_default().add(of, numbers);
        }
    }
}

impl Server {
    /// Goes on with the walk by `max` znodes. Returns true once none is left. As in upstream, only a znode without
    /// children belongs to a quota.
    pub fn walk_quotas(&self, walk: &mut QuotaWalk, max: usize) -> bool {
        let mut left = max;
        while left > 0 {
            let Some((at, done)) = walk.rest.pop() else { return true };
            let before = walk.rest.len();
            let from = (done.as_deref().unwrap_or_default(), done.is_some());
            let names = self.tree.children_from(&at, from, left);
            let is_leaf = done.is_none() && names.is_empty();
            if names.len() == left {
                walk.rest.push((at.clone(), names.last().cloned()));
            }
            left = left.saturating_sub(names.len() + 1);
            walk.rest.extend(names.iter().map(|name| (alloc::format!("{at}/{name}"), None)));
            let namespace = at[path::QUOTA_ROOT.len()..].split('/').nth(1);
            let data = self.tree.get(&at).and_then(|node| node.data.as_deref());
            if is_leaf
                && walk.rest.len() == before
                && let (Some(quota), Some(namespace), Some(data)) = (classify(&at), namespace, data)
            {
                walk.add(namespace, &quota, QuotaNumbers::parse(data));
            }
        }
        walk.rest.is_empty()
    }
}
