//! A key-value store on an array: the array's volume as the store sees it, the store as its clients see it,
//! and serving it.

mod beside;
mod ferry;
mod kept;
mod serve;

pub use ferry::Ferry;
pub use kept::KeptKeys;
pub use serve::{KeyEndpoints, KeyService, KeysServed, Making, refuse_store, serve_keys};
