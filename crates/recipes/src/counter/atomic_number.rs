//! A number that is changed by compare and set.

use crate::counter::{AtomicUpdate, CounterError, DistributedAtomicValue, PromotedToLock, Result};
use ostler_client::{Bytes, Client, RetryPolicy};
use std::marker::PhantomData;

/// A number that a znode can hold: big-endian, as Java writes it.
pub trait AtomicNumber: Copy + Send + Sync + std::fmt::Debug + private::Sealed {
    /// Zero, which an absent znode and one without data hold.
    const ZERO: Self;
    /// An array of the number's size.
    type Bytes: AsRef<[u8]> + Default + AsMut<[u8]>;

    /// The bytes of a znode that holds this number.
    fn to_bytes(self) -> Self::Bytes;

    /// The number that a znode with these bytes holds.
    fn from_bytes(bytes: Self::Bytes) -> Self;

    /// The sum. It wraps around at the ends of the type, as in Java.
    #[must_use]
    fn plus(self, other: Self) -> Self;

    /// The number with the opposite sign.
    #[must_use]
    fn negated(self) -> Self;
}

mod private {
    pub trait Sealed {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
}

macro_rules! number {
    ($number:ty, $size:literal) => {
        impl AtomicNumber for $number {
            const ZERO: $number = 0;
            type Bytes = [u8; $size];

            fn to_bytes(self) -> [u8; $size] {
                self.to_be_bytes()
            }

            fn from_bytes(bytes: [u8; $size]) -> $number {
                <$number>::from_be_bytes(bytes)
            }

            fn plus(self, other: $number) -> $number {
                self.wrapping_add(other)
            }

            fn negated(self) -> $number {
                self.wrapping_neg()
            }
        }
    };
}

number!(i32, 4);
number!(i64, 8);

pub(crate) fn encode<N: AtomicNumber>(number: N) -> Bytes {
    Bytes::copy_from_slice(number.to_bytes().as_ref())
}

/// The number that the data begins with. As in Curator, no data is zero, and bytes after the number are ignored.
pub(crate) fn decode<N: AtomicNumber>(path: &str, data: &[u8]) -> Result<N> {
    if data.is_empty() {
        return Ok(N::ZERO);
    }
    let mut bytes = N::Bytes::default();
    let expected = bytes.as_ref().len();
    let number = data.get(..expected).ok_or(CounterError::Corrupt {
        path: path.into(),
        size: data.len(),
        expected,
    })?;
    bytes.as_mut().copy_from_slice(number);
    Ok(N::from_bytes(bytes))
}

/// A number that many processes change. Curator's `DistributedAtomicLong` and `DistributedAtomicInteger`.
///
/// ```
/// # use ostler_client::RetryPolicy;
/// # use ostler_recipes::counter::DistributedAtomicLong;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = ostler_testkit::TestServer::start().await?;
/// # let client = ostler_client::Client::connect(&server.connect_string()).await?;
/// let tickets = DistributedAtomicLong::new(&client, "/tickets", RetryPolicy::default());
/// let drawn = tickets.increment().await?;
/// if drawn.succeeded {
///     println!("ticket {}", drawn.after);
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct DistributedAtomicNumber<N> {
    value: DistributedAtomicValue,
    number: PhantomData<N>,
}

/// A number of eight bytes.
pub type DistributedAtomicLong = DistributedAtomicNumber<i64>;

/// A number of four bytes.
pub type DistributedAtomicInteger = DistributedAtomicNumber<i32>;

impl<N: AtomicNumber> DistributedAtomicNumber<N> {
    /// The number in a znode. The first write creates the znode. `retry` says how often to try again when other writers
    /// are faster.
    pub fn new(client: &Client, path: &str, retry: RetryPolicy) -> Self {
        DistributedAtomicNumber {
            value: DistributedAtomicValue::new(client, path, retry),
            number: PhantomData,
        }
    }

    pub(crate) fn path(&self) -> &str {
        self.value.path()
    }

    /// Tries again under a lock when the retry policy gives up.
    #[must_use]
    pub fn promoted_to_lock(self, promotion: PromotedToLock) -> Self {
        DistributedAtomicNumber { value: self.value.promoted_to_lock(promotion), ..self }
    }

    /// Reads the number; zero if the znode does not exist.
    ///
    /// # Errors
    /// [`CounterError::Corrupt`]; those of getData, except `NoNode`.
    pub async fn get(&self) -> Result<N> {
        self.of(self.value.get().await?)
    }

    /// Sets the number unconditionally.
    ///
    /// # Errors
    /// Those of [`DistributedAtomicValue::force_set`].
    pub async fn force_set(&self, number: N) -> Result<()> {
        self.value.force_set(encode(number)).await
    }

    /// Sets the number if it is `expected`; a znode without data holds zero. Tries once. If the znode does not exist,
    /// nothing is set.
    ///
    /// # Errors
    /// [`CounterError::Corrupt`]; those of [`DistributedAtomicValue::compare_and_set`].
    pub async fn compare_and_set(&self, expected: N, number: N) -> Result<AtomicUpdate<N>> {
        let is_expected =
            |data: &Bytes| Ok(encode(decode::<N>(self.value.path(), data)?) == encode(expected));
        let update = self.value.set_if(is_expected, &encode(number)).await?;
        update.try_map(|data| self.of(data))
    }

    /// Sets the number, and returns the number before.
    ///
    /// # Errors
    /// Those of [`DistributedAtomicValue::update`].
    pub async fn try_set(&self, number: N) -> Result<AtomicUpdate<N>> {
        self.value.try_set(encode(number)).await?.try_map(|data| self.of(data))
    }

    /// Creates the znode with this number; false if there is one already.
    ///
    /// # Errors
    /// Those of [`DistributedAtomicValue::initialize`].
    pub async fn initialize(&self, number: N) -> Result<bool> {
        self.value.initialize(encode(number)).await
    }

    /// Adds one.
    ///
    /// # Errors
    /// Those of [`add`](DistributedAtomicNumber::add).
    pub async fn increment(&self) -> Result<AtomicUpdate<N>>
    where
        N: From<bool>,
    {
        self.add(N::from(true)).await
    }

    /// Subtracts one.
    ///
    /// # Errors
    /// Those of [`add`](DistributedAtomicNumber::add).
    pub async fn decrement(&self) -> Result<AtomicUpdate<N>>
    where
        N: From<bool>,
    {
        self.add(N::from(true).negated()).await
    }

    /// Adds `delta`. The number wraps around at the ends of the type, as in Java.
    ///
    /// # Errors
    /// [`CounterError::Corrupt`]; those of [`DistributedAtomicValue::update`]. After connection loss `delta` may
    /// be added or not.
    pub async fn add(&self, delta: N) -> Result<AtomicUpdate<N>> {
        let path = self.value.path();
        let sum = |data: Option<&Bytes>| {
            let number: N = decode(path, data.map_or(&[][..], |data| data))?;
            Ok(encode(number.plus(delta)))
        };
        self.value.update(sum).await?.try_map(|data| self.of(data))
    }

    /// Subtracts `delta`.
    ///
    /// # Errors
    /// Those of [`add`](DistributedAtomicNumber::add).
    pub async fn subtract(&self, delta: N) -> Result<AtomicUpdate<N>> {
        self.add(delta.negated()).await
    }

    fn of(&self, data: Option<Bytes>) -> Result<N> {
        decode(self.value.path(), &data.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_java_writes_them() {
        assert_eq!(&encode(1_i64)[..], [0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(&encode(-2_i32)[..], [255, 255, 255, 254]);
        for (data, expected) in [(&[][..], Some(0)), (&[0, 0, 1, 0], Some(256)), (&[0, 0, 0, 7, 9], Some(7))]
        {
            assert_eq!(decode::<i32>("/n", data).ok(), expected);
        }
        assert_eq!(
            decode::<i64>("/n", &[1, 2, 3]).unwrap_err().to_string(),
            "/n: 3 bytes of data, which are not a number of 8 bytes; the znode holds other data"
        );
    }
}
