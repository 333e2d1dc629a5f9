//! The coefficients of the code (formula and reasons in the crate documentation), and inversion
//! of small matrices.

use crate::field;

/// The most data columns and parities a codeword can have together.
pub(crate) const PIECE_COUNT_MAX: usize = 255;

/// The point of column `column` >= 1 on the projective line; column 0 has the point at infinity.
fn column_point(column: usize) -> u8 {
    let power = field::power_of_two(column);
    field::multiply(power, field::inverse(power ^ 1))
}

/// The factor of data column `column` in parity `row`; `row + column` < 255.
pub(crate) fn coefficient(row: usize, column: usize) -> u8 {
    assert!(row + column < PIECE_COUNT_MAX, "no code has both parity {row} and data column {column}");
    match (row, column) {
        (0, _) | (_, 0) => 1,
        (1, _) => field::power_of_two(column),
        (_, _) => {
            let (x, y) = (column_point(256 - row), column_point(column));
            field::multiply(y, field::inverse(y ^ x))
        }
    }
}

/// Inverts the `size` x `size` matrix `matrix` (row-major) into `inverse`; `matrix` is used up. Every rebuild
/// inverts one, so those of one or two missing columns have formulas of their own.
///
/// # Panics
/// If the matrix is singular, which no square submatrix of the code is.
pub(crate) fn invert(matrix: &mut [u8], inverse: &mut [u8], size: usize) {
    match (&*matrix, &mut *inverse) {
        ([], []) => {}
        (&[a], [inverse]) => *inverse = field::inverse(a),
        (&[a, b, c, d], inverse) => {
            let scale = field::inverse(field::multiply(a, d) ^ field::multiply(b, c));
            inverse.copy_from_slice(&[d, b, c, a].map(|element| field::multiply(element, scale)));
        }
        (_, _) => eliminate(matrix, inverse, size),
    }
}

/// [`invert`] by Gauss-Jordan elimination; `matrix` becomes the identity.
fn eliminate(matrix: &mut [u8], inverse: &mut [u8], size: usize) {
    inverse.fill(0);
    for i in 0..size {
        inverse[i * size + i] = 1;
    }
    for pivot in 0..size {
        let row = (pivot..size).find(|&row| matrix[row * size + pivot] != 0);
        let row = row.expect("every square submatrix of the code is invertible");
        for column in 0..size {
            matrix.swap(row * size + column, pivot * size + column);
            inverse.swap(row * size + column, pivot * size + column);
        }
        let scale = field::inverse(matrix[pivot * size + pivot]);
        for column in 0..size {
            for side in [&mut *matrix, &mut *inverse] {
                side[pivot * size + column] = field::multiply(side[pivot * size + column], scale);
            }
        }
        for row in (0..size).filter(|&row| row != pivot) {
            let factor = matrix[row * size + pivot];
            for column in 0..size {
                for side in [&mut *matrix, &mut *inverse] {
                    side[row * size + column] ^= field::multiply(side[pivot * size + column], factor);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_rows_are_those_of_raid_6() {
        for column in 0..254 {
            assert_eq!(coefficient(0, column), 1);
        }
        let row: Vec<_> = (0..9).map(|column| coefficient(1, column)).collect();
        assert_eq!(row, [1, 2, 4, 8, 16, 32, 64, 128, 0x1D]);
    }

    /// No coefficient is 0 and no two columns are proportional in any two rows: any two pieces of any code
    /// may be lost.
    #[test]
    fn every_minor_of_order_two_of_the_whole_table_is_nonzero() {
        for a in 0..254 {
            for b in a + 1..254 {
                let mut seen = [false; 256];
                for column in 0..PIECE_COUNT_MAX - b {
                    let (upper, lower) = (coefficient(a, column), coefficient(b, column));
                    assert!(upper != 0 && lower != 0);
                    let ratio = usize::from(field::multiply(upper, field::inverse(lower)));
                    assert!(!std::mem::replace(&mut seen[ratio], true), "rows {a}, {b}, column {column}");
                }
            }
        }
    }

    #[test]
    fn inverse_times_matrix_is_the_identity_for_every_square_corner() {
        for size in 1..=127 {
            let matrix: Vec<_> = (0..size * size)
                .map(|i| coefficient(i / size, i % size + (256 - 2 * size).min(50)))
                .collect();
            let (mut left, mut inverse) = (matrix.clone(), vec![0xEE; size * size]);
            invert(&mut left, &mut inverse, size);
            for (i, j) in (0..size).flat_map(|i| (0..size).map(move |j| (i, j))) {
                let product = (0..size)
                    .fold(0, |sum, l| sum ^ field::multiply(matrix[i * size + l], inverse[l * size + j]));
                assert_eq!(product, u8::from(i == j), "size {size}");
            }
        }
    }
}
