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
    /// Znodes that are left, and how many children of each are done.
    rest: Vec<(String, usize)>,
}

impl Default for QuotaWalk {
    fn default() -> QuotaWalk {
        QuotaWalk { found: BTreeMap::new(), rest: Vec::from([(String::from(path::QUOTA_ROOT), 0)]) }
    }
}

impl Server {
    /// Goes on with the walk by `max` znodes. Returns true once none is left. As in upstream, only a znode without
    /// children belongs to a quota.
    pub fn walk_quotas(&self, walk: &mut QuotaWalk, max: usize) -> bool {
        let mut left = max;
        while left > 0 {
            let Some((at, from)) = walk.rest.pop() else { return true };
            let before = walk.rest.len();
            let child = |name| (alloc::format!("{at}/{name}"), 0);
            let children: Vec<_> = self.tree.children(&at).skip(from).take(left).map(child).collect();
            let is_leaf = from == 0 && children.is_empty();
            if children.len() == left {
                walk.rest.push((at.clone(), from + left));
            }
            left = left.saturating_sub(children.len() + 1);
            walk.rest.extend(children);
            let namespace = at[path::QUOTA_ROOT.len()..].split('/').nth(1);
            let data = self.tree.get(&at).and_then(|node| node.data.as_deref());
            if is_leaf
                && walk.rest.len() == before
                && let (Some(quota), Some(namespace), Some(data)) = (classify(&at), namespace, data)
            {
                walk.found.entry(namespace.into()).or_default().add(&quota, QuotaNumbers::parse(data));
            }
        }
        walk.rest.is_empty()
    }
}
