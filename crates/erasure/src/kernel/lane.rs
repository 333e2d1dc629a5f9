//! What a back end brings: a vector register and its instructions.

/// A vector register and what the kernels do with it.
///
/// # Safety
/// The contract of every unsafe function here: the CPU has the instructions of the lane, and a pointer is
/// good for [`Lane::BYTES`] bytes, to be read (`load`) or written (`store`). Nothing needs to be aligned.
pub(super) trait Lane: Copy {
    /// Width.
    const BYTES: usize;
    /// How many registers there are: 16 or 32.
    const REGISTERS: usize;
    /// A coefficient, in the form that is quickest to turn into a multiplier.
    type Factor: Copy;
    /// A coefficient in registers.
    type Multiplier: Copy;

    /// Reads a register's bytes.
    unsafe fn load(from: *const u8) -> Self;
    /// Writes them.
    unsafe fn store(self, to: *mut u8);
    /// All bits zero.
    unsafe fn zero() -> Self;
    /// The sum in the field.
    unsafe fn xor(self, other: Self) -> Self;
    /// Prepares a coefficient, once for each call of a kernel.
    fn factor(coefficient: u8) -> Self::Factor;
    /// Brings a prepared coefficient into registers.
    unsafe fn multiplier(factor: Self::Factor) -> Self::Multiplier;
    /// The product of every byte and a coefficient.
    unsafe fn multiply(self, by: Self::Multiplier) -> Self;
}
