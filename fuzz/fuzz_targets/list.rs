//! Any words as the list of a checkpoint: refused, or written back as they were; and as changes of one.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("chunks of four bytes"));
    let words: Vec<u32> = data.chunks_exact(4).map(word).collect();
    if let Ok(items) = format::decode_list(&words) {
        let mut again = Vec::new();
        items.iter().for_each(|item| item.encode(&mut again));
        assert_eq!(again, words);
    }
    // The same words as a packed list: refused, or the same again when packed, if they can be read.
    if let Ok(unpacked) = format::unpack_list(&words)
        && format::Changes::read(&unpacked).is_ok()
    {
        let mut again = Vec::new();
        format::ListPacker::default().pack(&unpacked, &mut again);
        assert_eq!(format::unpack_list(&again), Ok(unpacked));
    }
    // The same words as changes of a list: refused, or a list again.
    if let Ok(folded) = format::fold_list(&[], [&*words].into_iter()) {
        assert!(format::decode_list(&folded).is_ok());
    }
});
