//! What the figures of devices count.

use crate::status::Status;

/// Lines on what is counted, if anything is.
pub fn list(text: &mut String, status: &Status) {
    if status.devices.iter().any(|device| device.errors.is_some()) {
        text.push_str(
            "
  READ, WRITE: requests that the device failed, of any length; CKSUM: chunks and metadata blocks that were read and wrong;
  HEALED: chunks and metadata blocks written anew; BYTES: of the place since serving began
",
        );
    }
}
