//! [`DiskLayer`]: a disk that changes some operations of the operating system's disk.

use crate::disk::{Disk, DiskFile, OsDisk};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Declares the trait and the implementation of [`Disk`] from one list of the operations.
macro_rules! layer {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        /// A disk on top of [`OsDisk`]. An operation that a layer does not have goes to [`OsDisk`].
        ///
        /// Each layer is a [`Disk`]. Use it as one: the names of the operations are the same, so code that has both
        /// traits in scope must name one of them.
        pub trait DiskLayer: Send + Sync {
            $(
                #[doc = concat!("See [`Disk::", stringify!($name), "`].")]
                fn $name(&self, $($argument: $kind),*) -> $result {
                    OsDisk.$name($($argument),*)
                }
            )*
        }

        impl<Layer: DiskLayer> Disk for Layer {
            $(
                fn $name(&self, $($argument: $kind),*) -> $result {
                    DiskLayer::$name(self, $($argument),*)
                }
            )*
        }
    };
}

layer! {
    create(path: &Path) -> io::Result<Box<dyn DiskFile>>;
    open(path: &Path) -> io::Result<Box<dyn DiskFile>>;
    open_to_change(path: &Path) -> io::Result<Box<dyn DiskFile>>;
    is_only_here(path: &Path) -> io::Result<bool>;
    exists(path: &Path) -> io::Result<bool>;
    rename(from: &Path, to: &Path) -> io::Result<()>;
    remove(path: &Path) -> io::Result<()>;
    remove_while(path: &Path, go_on: &dyn Fn() -> bool) -> io::Result<()>;
    list(dir: &Path) -> io::Result<Vec<String>>;
    behind_links(path: &Path) -> io::Result<PathBuf>;
    copy_access(from: &Path, to: &Path) -> io::Result<()>;
    create_dir_all(dir: &Path) -> io::Result<()>;
    sync_dir(dir: &Path) -> io::Result<()>;
}
