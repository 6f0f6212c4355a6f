//! Tests of the choice of a look-ahead.

use super::*;

const fn cpu(l1_kibibytes: u64, is_amd: bool) -> LookAhead {
    LookAhead::of_cpu(Cpu {
        l1_bytes: l1_kibibytes << 10,
        l3_bytes: 64 << 20,
        is_amd,
    })
}

#[test]
fn the_caches_and_the_maker_decide() {
    assert_eq!(cpu(32, false).to_string(), "1 block into L1");
    for kibibytes in [0, 48, 128] {
        let shown = cpu(kibibytes, false).to_string();
        let expected = "3 blocks into L1 (2 for long visits), 2 blocks into L1 from 128 MiB on";
        assert_eq!(shown, expected);
    }
    assert_eq!(cpu(48, true), cpu(48, false));
    assert_eq!(cpu(0, true), cpu(0, false));
    let amd = cpu(32, true);
    assert_eq!(
        amd.to_string(),
        "1 block into L1, 2 blocks into L2 from 64 MiB on (1 where a key has two lines)"
    );
    // A filter that fits into the L3 cache, and one that does not.
    assert_eq!(amd.cache_for((1 << 20) - 1), CacheLevel::L1);
    assert_eq!(amd.cache_for(1 << 20), CacheLevel::L2);
    assert_eq!(cpu(32, false).cache_for(1 << 30), CacheLevel::L1);
    for is_short in [true, false] {
        assert_eq!(amd.blocks(1 << 20, 1, is_short), Blocks::Two);
        assert_eq!(amd.blocks(1 << 20, 2, is_short), Blocks::One);
        assert_eq!(amd.blocks(1, 1, is_short), Blocks::One);
        assert_eq!(cpu(48, false).blocks(1 << 22, 2, is_short), Blocks::Two);
    }
    assert_eq!(cpu(48, false).blocks(1 << 20, 1, true), Blocks::Three);
    assert_eq!(cpu(48, false).blocks(1 << 20, 1, false), Blocks::Two);
    for chosen in [amd, cpu(48, false)] {
        assert!(chosen.finds_in_vectors(CACHED_LINES - 1, false));
        assert!(!chosen.finds_in_vectors(CACHED_LINES, false));
    }
    assert!(cpu(32, false).finds_in_vectors(1 << 30, true));
    assert!(cpu(48, false).finds_in_vectors(1 << 20, true));
    assert!(amd.finds_in_vectors((1 << 20) - 1, true));
    assert!(!amd.finds_in_vectors(1 << 20, true));
}

#[test]
fn a_fixed_look_ahead_is_1_to_3_blocks_and_perhaps_a_cache() {
    for text in ["1", "2", "3", "1,l1", "3,l2"] {
        for chosen in [cpu(32, false), cpu(32, true)] {
            let fixed = chosen.fixed("lookahead", text).unwrap();
            assert!(fixed.to_string().starts_with(&text[..1]));
            assert_eq!(fixed.blocks(0, 2, false), fixed.blocks(u64::MAX, 1, true));
            assert_eq!(fixed.blocks(0, 2, true), fixed.blocks(0, 2, false));
            for lines in [0, u64::MAX] {
                let expected = match text.split_once(',') {
                    Some((_, "l1")) => CacheLevel::L1,
                    Some(_) => CacheLevel::L2,
                    None => chosen.cache_for(lines),
                };
                assert_eq!(fixed.cache_for(lines), expected, "{text}");
            }
        }
    }
    for text in ["0", "4", "x", "-1", "1,", "1,l3", ",l1"] {
        let error = LookAhead::fix(text).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "invalid lookahead={text}: expected 1, 2 or 3 blocks of 64 keys, and perhaps a \
                 cache, as in 2,l1 or 2,l2"
            )
        );
    }
}

/// Other tests of this process choose as well, so the choice may be any; it is made once.
#[test]
fn a_choice_that_comes_too_late_is_rejected() {
    let chosen = LookAhead::of_process().unwrap();
    let texts = ["1,l1", "2,l1", "3,l1", "1,l2", "2,l2", "3,l2"];
    let mut rejected = 0;
    for text in texts {
        let fixed = LookAhead::of_cpu(Cpu::detect()).fixed(FIELD, text).unwrap();
        match LookAhead::fix(text) {
            Ok(()) => assert_eq!(fixed, chosen),
            Err(error) => {
                let expected = format!(
                    "invalid lookahead={text}: expected the choice that this process has made \
                     before, {chosen}"
                );
                assert_eq!(error.to_string(), expected);
                rejected += 1;
            }
        }
        assert_eq!(LookAhead::of_process(), Ok(chosen));
    }
    assert!(rejected >= texts.len() - 1);
}
