//! Values that parsing and building reject, and the last ones that they accept.

use echoless::{BuildError, FilterSpec, SpecError};

use crate::parse;

/// The error of parsing `text`, or of building from it.
pub(crate) fn rejection(text: &str) -> SpecError {
    match echoless_papers::parse(text) {
        Err(error) => error,
        Ok(spec) => match spec.build().err() {
            Some(BuildError::Spec(error)) => error,
            other => panic!("{text}: expected a specification error, not {other:?}"),
        },
    }
}

/// One case a line: specification | field | rejected value | part of what is expected.
const CASES: &str = "
nosuch:k=2 | filter | nosuch | bloom, rsbf
 | filter |  | bloom
bloom:kk=2 | option | kk | memory, form, k, seed, tracked
bloom:k | option | k | key=value
bloom:, | option |  | key=value
bloom:k=2, | option |  | key=value
bloom:k=2,,seed=3 | option |  | key=value
bloom:k=2, , | option |  | key=value
bloom:k=2,k=3 | option | k=3 | each key once
bloom:form=round | form | round | scattered, line
bloom:form=line | memory |  | 64MiB
bloom:form=line,memory=63B | memory | 63 B | 64 B (one line)
bloom:form=line,memory=512GiB | memory | 549755813888 B | 256 GiB
bloom:k=0,form=line,memory=1KiB | k | 0 | 1 to 64
bsbf:k=65,form=line,memory=1KiB | k | 65 | 1 to 64
rsbf:pstar=0.003,form=line,memory=1KiB | pstar | 0.003 | 0, or 3.80e-3 to 1 in the line form
rsbf:pstar=1.01,form=line,memory=1KiB | pstar | 1.01 | to 1
rsbf:pstar=NaN,form=line,memory=1KiB | pstar | NaN | to 1
sbf:d=3,form=line,memory=1KiB | d | 3 | 1, 2, 4 or 8
sbf:k=32,d=8,form=line,memory=1KiB | k | 32 | 1 to 31
sbf:d=2,p=253,form=line,memory=1KiB | p | 253 | 1 to 252
sbf:p=0,form=line,memory=1KiB | p | 0 | 1 to the number of cells
sbf:reach=0.5,form=line,memory=1KiB | reach | 0.5 | 1 in the line form
sbf:fps=1e-12,form=line,memory=1KiB | fps | 1e-12 | or more in 504 cells
sbf:fps=1,form=line,memory=1KiB | fps | 1 | between 0 and 1
fpsbf:c=2,f=4,form=line,memory=1KiB | c + f | 2 + 4 bits | 8 or 16 bits
fpsbf:c=0,f=8,form=line,memory=1KiB | c | 0 | 1 to 16
fpsbf:k=33,form=line,memory=1KiB | k | 33 | 1 to 32
fpsbf:xi=-1,form=line,memory=1KiB | xi | -1 | 0 to 1
qht:slots=4,bits=4,form=line,memory=1KiB | bits | 4 | 8, 16, 32 or 64
qht:slots=4,bits=8,form=line,memory=1KiB | slots | 4 of 8 bits | 64 of 8, 32 of 16, 16 of 32, 8 of 64 bits
qhtd:slots=32,bits=16,form=line,memory=1KiB | slots | 32 of 16 bits | 63 of 8, 31 of 16, 15 of 32, 7 of 64 bits
qht:rows=sorted,form=line,memory=1KiB | rows | sorted | packed
clocked:window=0,memory=1KiB | window | 0 | 1 to 9223372036854775807
stamped:window=9223372036854775808,memory=1KiB | window | 9223372036854775808 | 1 to 9223372036854775807
clocked:window=10m | window | 10m | a whole number from 1 to 9223372036854775807
clocked:bits=8,memory=1KiB | bits | 8 | 16, 32 or 64
stamped:bits=16,memory=1KiB | bits | 16 | 32 or 64
stamped:bits=32,skew=9,memory=1KiB | option | skew | only with bits=64
stamped:skew=0,memory=1KiB | skew | 0 | 1 to 4611686018427387903
stamped:window=9223372036854775807,skew=1,memory=1KiB | skew | 1 | at most 0, with window=9223372036854775807
clocked:bits=x | bits | x | 16, 32 or 64
clocked:refresh=yes | refresh | yes | true, false
clocked:form=scattered,memory=1KiB | form | scattered | line, the only form of clocked
clocked:memory=63B | memory | 63 B | 64 B (one line)
clocked:dense=true,memory=4095B | memory | 4095 B | 4096 B (one page)
clocked:dense=yes | dense | yes | false, true
stamped:dense=true | option | dense | one of memory, form, window, refresh, bits, skew, seed, tracked
dense:memory=4095B | memory | 4095 B | 4096 B (one page)
dense:bits=8,memory=4KiB | bits | 8 | 16, 32 or 64
dense:bits=24,memory=4KiB | bits | 24 | 16, 32 or 64
dense:replacement=old | replacement | old | lru
dense:replacement=qqhtd,memory=4KiB | replacement | qqhtd | lru, fifo
cuckoo:form=line,memory=1KiB | form | line | scattered for cuckoo; the line form exists for bloom, rsbf, bsbf
bloom:k=0,memory=1KiB | k | 0 | 1 to 64
bloom:k=65,memory=1KiB | k | 65 | 1 to 64
bloom:k=-1 | k | -1 | a whole number from 1 to 64
bloom:k=4294967296 | k | 4294967296 | a whole number from 1 to 64
rsbf:k=1.5 | k | 1.5 | a whole number from 1 to 64
bloom:seed=18446744073709551616 | seed | 18446744073709551616 | a whole number from 0 to 18446744073709551615
sbf:k=x | k | x | a whole number from 1 to 64
sbf:d=-3 | d | -3 | a whole number from 1 to 16
sbf:p=-4 | p | -4 | a whole number from 1 to the number of cells
fpsbf:k=-1 | k | -1 | a whole number from 1 to 64
fpsbf:c=-1 | c | -1 | a whole number from 1 to 16
fpsbf:f=-1 | f | -1 | a whole number from 1 to 16
bdbf:window=-1 | window | -1 | a whole number from 1 to 18446744073709551615
bdbf:k=-1 | k | -1 | a whole number from 1 to 64
bdbf:c=-1 | c | -1 | a whole number from 2 to 32
sqf:slots=99999999999 | slots | 99999999999 | a whole number from 1 to 64
sqf:r=-1 | r | -1 | a whole number from 1 to 27
sqf:kept=-1 | kept | -1 | a whole number from 1 to 27
qht:slots=99999999999 | slots | 99999999999 | a whole number from 1 to 64
qht:bits=4294967296 | bits | 4294967296 | a whole number from 1 to 32, or 64
qht:form=line,bits=4294967296 | bits | 4294967296 | 8, 16, 32 or 64
cuckoo:slots=99999999999 | slots | 99999999999 | a whole number from 1 to 64
cuckoo:bits=-1 | bits | -1 | a whole number from 1 to 32
cuckoo:kicks=99999999999 | kicks | 99999999999 | a whole number from 1 to 1000
a2:k=99999999999 | k | 99999999999 | a whole number from 1 to 64
bloom:k=9,memory=1B | memory | 1 B | at least 2 B
bloom:memory=0B | memory | 0 B | at least 1 B
bloom:memory=2305843009213693952B | memory | 2305843009213693952 B | at most
bloom:memory=12parsecs | memory | 12parsecs | K, M, G, T, P (or KiB ..) for powers of 1024
bloom:tracked=0 | tracked | 0 | above 0 and at most 1
bloom:tracked=1.01 | tracked | 1.01 | above 0 and at most 1
rsbf:pstar=1.5,memory=1KiB | pstar | 1.5 | 0 to 1
rsbf:pstar=NaN,memory=1KiB | pstar | NaN | 0 to 1
rsbf:as=printed | as | printed | described, tabled
rsbf:as=tabled,pstar=0.1 | option | pstar | only with as=described
rsbf:as=tabled,pstar=0.1,form=line | option | pstar | only with as=described
vertical:least=2/bloom:k=4 | option | least | only with failed=hybrid or repaired
vertical:failed=fresh,least=2/bloom:k=4 | option | least | only with failed=hybrid or repaired
rsbf:as= | as | \"\" | described, tabled
qht:rows= | rows | \"\" | packed, sorted
qht:form=line,rows= | rows | \"\" | packed
clocked:refresh= | refresh | \"\" | true, false
vertical:failed=/bloom | failed | \"\" | duplicate, fresh
bloom:form= | form | \"\" | scattered, line
bloom:k= | k | \"\" | a whole number from 1 to 64
bloom:=4 | option | \"\" | one of memory, form, k, seed, tracked
fingerprint:replacement=,memory=1KiB | replacement | \"\" | fifo, lru
sbf:k=0,memory=1KiB | k | 0 | 1 to 64
sbf:d=0,memory=1KiB | d | 0 | 1 to 16
sbf:d=17,memory=1KiB | d | 17 | 1 to 16
sbf:p=0,memory=1KiB | p | 0 | 1 to the number of cells
sbf:p=9000,memory=1KiB | p | 9000 | 1 to 8192
sbf:p=4,fps=0.1 | fps | 0.1 | not both
sbf:fps=0,memory=1KiB | fps | 0 | between 0 and 1
sbf:fps=1,memory=1KiB | fps | 1 | between 0 and 1
sbf:fps=1e-12,memory=16B | fps | 1e-12 | or more in 128 cells
sbf:reach=0,memory=1KiB | reach | 0 | 1/8192 to 1 in 8192 cells
sbf:reach=0.0001,memory=1KiB | reach | 0.0001 | 1/8192 to 1
sbf:reach=1.01,memory=1KiB | reach | 1.01 | a number from 0 to 1
sbf:reach=NaN,memory=1KiB | reach | NaN | a number from 0 to 1
sbf:k=20,memory=2B | memory | 2 B | at least 3 B
sbf:update=sometimes | update | sometimes | every, distinct
fpsbf:c=0,memory=1KiB | c | 0 | 1 to 16
fpsbf:f=0,memory=1KiB | f | 0 | 1 to 16
fpsbf:xi=1.1,memory=1KiB | xi | 1.1 | 0 to 1
fpsbf:memory=1B | memory | 1 B | at least 3 B
bdbf:window=0,memory=1KiB | window | 0 | 1 to 18446744073709551615
bdbf:c=1,memory=1KiB | c | 1 | 2 to 32
bdbf:k=0,memory=1KiB | k | 0 | 1 to 64
bdbf:memory=512MiB | window | 1048576 | 2907270 or more in 536870912 B, where k and c would be 54 (at most 32)
bdbf:c=8,window=100,memory=1MiB | window | 100 | 1420 or more in 1048576 B, where k would be 242 (at most 64)
bdbf:k=33,window=100,memory=1KiB | c | 33 | 2 to 32
bdbf:k=4,c=8,memory=3B | memory | 3 B | at least 4 B
qht:slots=0,memory=1KiB | slots | 0 | 1 to 64
qht:slots=65,memory=1KiB | slots | 65 | 1 to 64
qht:bits=0,memory=1KiB | bits | 0 | 1 to 32
qht:bits=33,memory=1KiB | bits | 33 | 1 to 32
qht:slots=8,bits=32,memory=31B | memory | 31 B | at least 32 B (one row)
qht:slots=64,bits=8,rows=sorted,memory=1KiB | rows | 64 slots of 8 bits, sorted | 2^32
qht:slots=4,bits=4,rows=sorted,memory=513B | memory | 513 B | at least 514 B (one row and the ranks' table of 512 B)
qqht:rows=sorted,memory=1KiB | rows | sorted | packed
rowlru:rows=sorted,memory=1KiB | rows | sorted | packed
sqf:r=28,memory=1KiB | r | 28 | 1 to 27
sqf:r=2,kept=3,memory=1KiB | kept | 3 | 1 to 2
cuckoo:kicks=0,memory=1KiB | kicks | 0 | 1 to 1000
cuckoo:slots=0,memory=1KiB | slots | 0 | 1 to 64
cuckoo:memory=3B | memory | 3 B | at least 4 B
a2:k=3,fpr=0.1 | fpr | 0.1 | not both
a2:fpr=0 | fpr | 0 | above 5.42e-20 (k=64) and below 1
a2:fpr=1 | fpr | 1 | below 1
a2:fpr=NaN | fpr | NaN | below 1
a2:fpr=1e-30 | fpr | 1e-30 | above 5.42e-20
dbuf:fpr=5.4e-20 | fpr | 5.4e-20 | above 5.42e-20
a2:k=0,memory=1KiB | k | 0 | 1 to 64
a2:k=8,memory=4B | memory | 4 B | two keys
tbf:window=0,memory=1KiB | window | 0 | 1 to 9223372036854775807
tbf:window=9223372036854775808,memory=1KiB | window | 9223372036854775808 | 1 to 9223372036854775807
tbf:window=10m | window | 10m | a whole number from 1 to 9223372036854775807
tbf:k=0,memory=1KiB | k | 0 | 1 to 64
tbf:k=65,memory=1KiB | k | 65 | 1 to 64
tbf:k=x | k | x | a whole number from 1 to 64
tbf:k=4,equal=0,memory=1KiB | equal | 0 | 1 to 64
tbf:k=4,equal=5,memory=1KiB | equal | 5 | 1 to 4
tbf:equal=-1 | equal | -1 | a whole number from 1 to 64
tbf:bits=1,memory=1KiB | bits | 1 | 2 to 32
tbf:bits=33,memory=1KiB | bits | 33 | 2 to 32
tbf:bits=x | bits | x | a whole number from 2 to 32
tbf:refresh=yes | refresh | yes | false, true
tbf:form=line,memory=1KiB | form | line | scattered for tbf; the line form exists for bloom
tbf:k=8,bits=8,memory=15B | memory | 15 B | at least 16 B (k timers and a word)
gbf:window=0,memory=1KiB | window | 0 | 1 to 9223372036854775807
gbf:window=x | window | x | a whole number from 1 to 9223372036854775807
gbf:k=0,memory=1KiB | k | 0 | 1 to 64
gbf:k=65,memory=1KiB | k | 65 | 1 to 64
gbf:k=-1 | k | -1 | a whole number from 1 to 64
gbf:q=0,memory=1KiB | q | 0 | 1 to 30
gbf:q=31,memory=1KiB | q | 31 | 1 to 30
gbf:q=1.5 | q | 1.5 | a whole number from 1 to 30
gbf:refresh=1 | refresh | 1 | false, true
gbf:k=7,q=8,memory=23B | memory | 23 B | at least 24 B (k cells and a word)
apbf:window=0,memory=1KiB | window | 0 | 1 to 9223372036854775807
apbf:window=-1 | window | -1 | a whole number from 1 to 9223372036854775807
apbf:k=0,memory=1KiB | k | 0 | 1 to 63
apbf:k=64,memory=1KiB | k | 64 | 1 to 63
apbf:k=x | k | x | a whole number from 1 to 63
apbf:l=0,memory=1KiB | l | 0 | 1 to 63
apbf:k=60,l=5,memory=1KiB | l | 5 | 1 to 4
apbf:l=x | l | x | a whole number from 1 to 63
apbf:refresh=no | refresh | no | false, true
apbf:memory=143B | memory | 143 B | at least 144 B (one bit and a count for each slice)
lru:memory=23B | memory | 23 B | 24 B to
lru:q=0.5 | option | q | charge
fpbuffer:q=1,memory=1KiB | q | 1 | 0 to 1 (1 excluded)
";

#[test]
fn rejections_name_field_value_and_range() {
    for case in CASES.lines().skip(1) {
        let parts: Vec<&str> = case.split('|').map(str::trim).collect();
        let [text, field, asked, allowed] = parts[..] else {
            panic!("not four parts: {case}");
        };
        let error = rejection(text);
        assert_eq!(error.field, field, "{text}: {error}");
        assert_eq!(error.asked, asked, "{text}: {error}");
        assert!(error.allowed.contains(allowed), "{text}: {error}");
    }
}

#[test]
fn values_at_the_end_of_their_range_can_be_built() {
    for text in [
        "bdbf:window=5679,memory=1MiB",
        "bdbf:c=8,window=1420,memory=1MiB",
        "bdbf:k=64,c=32,window=1,memory=1MiB",
        "sbf:reach=0.0001220703125,memory=1KiB",
        "a2:fpr=5.43e-20,memory=1KiB",
        "tbf:k=8,bits=8,memory=16B",
        "tbf:k=64,equal=64,bits=32,memory=264B",
        "gbf:k=6,q=8,memory=16B",
        "gbf:k=64,q=30,memory=264B",
        "apbf:memory=144B",
        "apbf:k=1,l=63,memory=520B",
    ] {
        assert!(parse(text).build().is_ok(), "{text} is rejected");
    }
    assert_eq!(parse("a2:fpr=5.43e-20"), parse("a2:k=64"));
}

#[test]
fn an_exbibyte_of_memory_is_an_error_for_every_filter() {
    for name in FilterSpec::names() {
        let enough = if name == "bdbf" { "bdbf:k=2" } else { name };
        let spec = parse(enough).memory(1 << 60);
        match spec.build().err() {
            Some(BuildError::Memory(error)) => assert!(error.bytes >= 1 << 57, "{name}: {error}"),
            // The indices of a buffer, and of a line whose slots hold times, are 32 bits wide.
            Some(BuildError::Spec(error)) => {
                let narrow = ["lru", "fpbuffer", "clocked", "stamped", "dense"];
                assert!(narrow.contains(&name), "{name}: {error}");
            }
            other => panic!("{name}: expected an error, not {other:?}"),
        }
    }
}

#[test]
fn messages_name_what_was_written() {
    for (text, expected) in [
        (
            "tbf:window=9223372036854775808",
            "invalid window=9223372036854775808: expected 1 to 9223372036854775807",
        ),
        (
            "growing/bloom:k=2,memory=0",
            "invalid memory=0 B: expected at least 1 B, for one filter",
        ),
        (
            "fingerprint:fpr=-1e-300,memory=1KiB",
            "invalid fpr=-1e-300: expected a number between 0 and 1 (exclusive)",
        ),
        (
            "fpsbf:xi=-1e-300,memory=1KiB",
            "invalid xi=-1e-300: expected a number from 0 to 1",
        ),
        (
            "fingerprint:memory=",
            "invalid memory=\"\": expected a whole number with an optional unit: K, M, G, T, P (or \
             KiB ..) for powers of 1024, KB .. for powers of 1000, and fewer than 2^64 bytes",
        ),
    ] {
        assert_eq!(rejection(text).to_string(), expected, "{text}");
    }
    let dense: FilterSpec = parse("dense:memory=8KiB");
    let error = dense.build_partitions(0).unwrap_err().to_string();
    assert_eq!(
        error,
        "invalid partitions=0: expected 1 to 2 (one page each)"
    );
}

/// One case a line: specification | message, or its beginning.
const ADAPTED: &str = "
nosuch:x=1/bloom | invalid adapter=nosuch: expected one of horizontal, vertical, growing, tree
bloom:k=2/bloom | invalid adapter=bloom: expected one of
/bloom | missing adapter: expected a name before each /
horizontal//bloom | missing adapter: expected one of horizontal, vertical, growing, tree
horizontal:slices=8 | missing filter: expected a filter after horizontal, as in horizontal/bloom
horizontal:slices=8/ | missing filter: expected one of bloom
horizontal:memory=1KiB/bloom | invalid option=memory: expected one of slices, failed
horizontal:slices=2,slices=3/bloom | invalid option=slices=3: expected each key once
horizontal/horizontal/horizontal/horizontal/horizontal/bloom | invalid adapters=5: expected at most 4 around a filter
horizontal/bloom | missing memory: expected a size such as memory=64MiB
horizontal:slices=0/bloom:memory=1KiB | invalid slices=0: expected 1 to 65536
horizontal:slices=65537/bloom:memory=1MiB | invalid slices=65537: expected 1 to 65536
horizontal:slices=x/bloom | invalid slices=x: expected a whole number from 1 to 65536
horizontal:failed=lost/bloom | invalid failed=lost: expected one of duplicate, fresh
horizontal:slices=100/bloom:k=9,memory=100B | invalid memory=100 B: expected enough for 100 slices, each at least 2 B
horizontal:slices=17/rowlru:form=line,memory=1KiB | invalid slices=17: expected 1 to 16 (one line each)
horizontal:slices=2/a2:form=line,memory=1KiB | invalid form=line: expected scattered for a2
horizontal:slices=2/bloom:k=0,memory=1KiB | invalid k=0: expected 1 to 64
vertical:slices=0/bloom:memory=1KiB | invalid slices=0: expected 1 to 65536
vertical:slices=9/bloom:k=1,memory=1B | invalid slices=9: expected 1 to 8 (one cell in each piece)
vertical:slices=4/horizontal:slices=3/bloom:k=1,memory=1B | invalid slices=4 of 3 pieces: expected 1 to 8 (one cell
vertical:slices=4/horizontal:slices=0/bloom:k=1,memory=1B | invalid slices=0: expected 1 to 65536
vertical:slices=4/horizontal:failed=fresh/bloom:memory=1KiB | invalid failed=fresh: expected duplicate inside vertical slices
vertical/lru:memory=1KiB | invalid vertical=lru: expected one of bloom, tbf, whose keys have cells in one table
vertical/rlbsbf:memory=1KiB | invalid vertical=rlbsbf: expected one of bloom
vertical/growing/bloom:memory=1KiB | invalid vertical=growing: expected one of bloom
vertical/vertical/bloom:memory=1KiB | invalid vertical=vertical: expected one of bloom
vertical/horizontal/growing/bloom:memory=1KiB | invalid vertical=growing: expected one of bloom
vertical/bloom:form=line,memory=1KiB | invalid form=line: expected scattered under vertical
vertical:failed=some/bloom | invalid failed=some: expected one of duplicate, fresh, hybrid, repaired
vertical:least=2/bloom | invalid option=least: expected only with failed=hybrid or repaired
vertical:failed=hybrid,least=0/bloom:k=4,memory=1KiB | invalid least=0: expected 1 to 64
vertical:failed=repaired,least=5/bloom:k=4,memory=1KiB | invalid least=5: expected 1 to 4
vertical:probe=serial/bloom | invalid probe=serial: expected one of parallel, pipelined
vertical/bloom:k=65,memory=1KiB | invalid k=65: expected 1 to 64
growing:fpr=0/bloom:memory=1KiB | invalid fpr=0: expected a number between 0 and 1 (exclusive)
growing:fpr=NaN/bloom:memory=1KiB | invalid fpr=NaN: expected a number between 0 and 1 (exclusive)
growing:fpr=x/bloom | invalid fpr=x: expected a number between 0 and 1 (exclusive)
growing:threshold=age/bloom | invalid threshold=age: expected one of density, cardinality
growing:step=1parsec/bloom | invalid step=1parsec: expected
growing:step=0/bloom:memory=1KiB | invalid step=0 B: expected 1 B to 1024 B, the memory
growing:step=2KiB/bloom:memory=1KiB | invalid step=2048 B: expected 1 B to 1024 B, the memory
growing:step=1KiB/bloom:memory=2MiB | invalid step=1024 B: expected 2048 B to 2097152 B, the memory
growing/bloom:memory=7B | invalid step=0 B: expected 1 B to 7 B, the memory
growing:fpr=0.0001/bloom:k=2,memory=64B | invalid step=
tree:levels=0/bloom:memory=1KiB | invalid levels=0: expected 1 to 16
tree:levels=2,topdown=2/bloom:memory=1KiB | invalid topdown=2: expected 0 to 1
tree:mode=thin/bloom | invalid mode=thin: expected one of sparse, dense
tree:mode=dense/clocked:window=9,memory=1KiB | invalid mode=dense: expected
tree:levels=16/bloom:memory=1KiB | invalid memory=1024 B: expected at least 65535 B
growing/sbf:memory=1KiB | invalid growing=sbf: expected one of bloom
growing/clocked:window=9,memory=1KiB | invalid form=line: expected scattered under growing
growing/horizontal/bloom:memory=1KiB | invalid growing=horizontal: expected one of bloom
growing/growing/bloom:memory=1KiB | invalid growing=growing: expected one of bloom
growing/gbf:memory=1KiB | invalid growing=gbf: expected one of bloom, tbf
growing/tbf:equal=2,memory=1KiB | invalid equal=2: expected 1 under vertical slices and growth
vertical/tbf:refresh=true,memory=1KiB | invalid refresh=true: expected false under vertical slices and growth
growing/tbf:k=0,memory=1KiB | invalid k=0: expected 1 to 64
growing/tbf:window=9,memory=8B | invalid memory=1 B: expected at least 16 B (k timers and a word)
";

#[test]
fn rejections_of_adapted_filters_name_field_value_and_range() {
    for case in ADAPTED.lines().skip(1) {
        let (text, message) = case.split_once(" | ").expect("two parts");
        let error = rejection(text).to_string();
        assert!(error.starts_with(message), "{text}: {error}");
    }
}
