//! The quotas of all namespaces, for whoever watches over the server.

use crate::server::Server;
use alloc::{collections::BTreeMap, string::String, vec::Vec};
use ostler_proto::path;
use ostler_tree::quota::{QuotaNode, QuotaNumbers, classify};

/// The quotas below one name at the root, summed; `None` where none of them has such a znode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NamespaceQuota {
    /// Znodes; the hard limit where there is one.
    pub count_limit: Option<i64>,
    /// Bytes.
    pub bytes_limit: Option<i64>,
    /// Znodes that are there.
    pub count_usage: Option<i64>,
    /// Bytes that are there.
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

/// A walk over the znodes of quotas that others may interrupt: anybody may create very many.
#[derive(Debug)]
pub struct QuotaWalk {
    /// Limits and usage by the first name of the paths that have quotas, as far as the walk has come.
    pub found: BTreeMap<String, NamespaceQuota>,
    /// Znodes that are still to be looked at, and how many children of each have been.
    rest: Vec<(String, usize)>,
}

impl Default for QuotaWalk {
    fn default() -> QuotaWalk {
        QuotaWalk { found: BTreeMap::new(), rest: Vec::from([(String::from(path::QUOTA_ROOT), 0)]) }
    }
}

impl Server {
    /// Looks at this number of further znodes. Returns true once there are none left. As upstream looks for them: only a znode without
    /// children is a quota's.
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
