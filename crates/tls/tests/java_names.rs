//! Compares names with those of Java: `X500Principal` of OpenJDK 17.0.15 has given every answer in these tables.

#![allow(clippy::unwrap_used)]

use ostler_tls::{NameError, is_distinguished_name, subject_name};
use rustls_pki_types::CertificateDer;

/// Texts that `new X500Principal(text)` takes.
const NAMES: &[&str] = &[
    "",
    "CN=a",
    "cn=a, O=b",
    "CN=a;O=b",
    "CN = a",
    "CN=\"a,b\"",
    "CN=a+OU=b",
    "OID.2.5.4.3=a",
    "oid.2.5.4.3=a",
    "2.5.4.3=a",
    "2.5=a",
    "2.5.4.3=#0c0161",
    "CN=#0c0161",
    "CN=#0c81020101",
    "S=a",
    "T=a",
    "IP=a",
    "EMAIL=a",
    "EMAILADDRESS=a",
    "SURNAME=x",
    "GIVENNAME=x",
    "DNQ=x",
    "DNQUALIFIER=x",
    "INITIALS=x",
    "GENERATION=x",
    "SERIALNUMBER=x",
    "UID=x",
    "CN=a=b",
    "CN=a\\=b",
    "CN=a\\41",
    "CN=\\\\",
    "CN=\\\\,O=b",
    "CN=a\\\"b",
    "CN=",
    "CN= ",
    "CN=\n",
    "cn\n=a",
    "CN=a\\+b",
    "CN=a\\\\+b",
    "CN=a\\\\+O=b",
    "CN=\"a+b\"+O=c",
    "uıd=x",
    "CN=Jürgen",
    "CN=😀",
    "1.2.-0=a",
    "1.2.03=a",
    "1.2.99999999999999999999999999=a",
    " CN=a",
    "\tCN=a",
    "CN=a\tb",
    "CN=a\0b",
    "CN=\\ a",
    "CN=\"\\41\"",
    "CN=\"a\\\"b\"",
    "CN=\"a\" ",
    "CN=\"a\"\n",
    "CN=\"\"",
    "CN=\\#a",
    "CN=a#b",
    "CN=a\\;b",
    "CN=a\\\\\\,b",
    "CN=a\\\\\\\\,O=b",
    "2.39.1=a",
    "1.39=a",
    "0.39=a",
    "2.100=a",
    "2.9999999999=a",
    "CN=#0C0161",
    "CN=#0c0161,O=b",
    "CN=#0c0161+O=b",
    "CN=#8000",
    "CN=a\u{a0}",
    "cN=a",
    "CN==",
    "CN=a\\+",
    "CN=a\\\\+",
    "CN=\"\\\\+\"+O=b",
];

/// Texts that `new X500Principal(text)` refuses.
const NO_NAMES: &[&str] = &[
    "CN=\"a\"b",
    "+CN=a",
    "CN=a,",
    "CN=a, ",
    ",CN=a",
    "2=a",
    "3.1.2=a",
    "1.40=a",
    "CN=#0c0161 ",
    "CN=#",
    "CN=#0c",
    "CN=#0c02",
    "FOO=a",
    "E=a",
    "SN=x",
    "GN=x",
    "POSTALCODE=x",
    "TITLE=x",
    "CN=a\\b",
    "CN=a\\4",
    "CN=a\\zz",
    "CN=\\",
    "CN=a<b",
    "CN=a\"b",
    "CN",
    "=a",
    "CN=a+",
    "1.2.+3=a",
    "1.2.-1=a",
    "1..2=a",
    "1.2.=a",
    "foo",
    "super",
    "CN=\"\\ a\"",
    "CN=\"\\4\"",
    "CN=\"a",
    "C N=a",
    "CN=a,,O=b",
    "CN=a;",
    "CN=a\\x,b\\\\,O=c",
    "CN=\"a,b",
    "CN=a\",b\"",
    "CN=\"a\",\"O=b\"",
    "OID.CN=a",
    "OID. 2.5.4.3=a",
    "4294967295.1=a",
    "2.5.4.3.=a",
    ".2.5=a",
    "CN=#0c016",
    "CN=#0c8000",
    "CN=#0c850000000001",
    "CN=#é",
    "\u{a0}CN=a",
    "CN=a\\é",
    "CN=,",
    "CN=+",
    "CN=a++O=b",
    "x509",
];

/// Names in DER, in hexadecimal digits, and what `getName()` returns.
const SUBJECTS: &[(&str, &str)] = &[
    ("3000", ""),
    (
        "3039310b300906035504061302444531153013060355040a0c0c4f73746c65722c20496e632e3113301106035504030c0a636c69656e74206f6e65",
        "CN=client one,O=Ostler\\, Inc.,C=DE",
    ),
    (
        "304e311d301b06035504030c144ac3bc7267656e20e282ac20e5b1b120f09f9880310e300c06035504070c054bc3b66c6e310c300a06035504080c034e5257310f300d06035504090c065374722e2031",
        "STREET=Str. 1,ST=NRW,L=Köln,CN=Jürgen € 山 😀",
    ),
    (
        "304e31133011060a0992268993f22c6401191603636f6d31173015060a0992268993f22c64011916076578616d706c6531123010060a0992268993f22c6401010c027531310a300806035504030c0179",
        "CN=y,UID=u1,DC=example,DC=com",
    ),
    ("30173115301306092a864886f70d01090116066140622e6465", "1.2.840.113549.1.9.1=#16066140622e6465"),
    ("300e310c300a06035504051303313233", "2.5.4.5=#1303313233"),
    (
        "3026310b300906035504040c02736e310b3009060355042a0c02676e310a3008060355040c0c0174",
        "2.5.4.12=#0c0174,2.5.4.42=#0c02676e,2.5.4.4=#0c02736e",
    ),
    ("3024310a3008060355040a0c014f3116300806035504030c016d300a060355040b0c034f5531", "CN=m+OU=OU1,O=O"),
    (
        "303c31243008060355040b0c0131300806035504030c0132300e06092a864886f70d01090116013331143008060355040b0c01343008060355040b0c0135",
        "OU=4+OU=5,OU=1+CN=2+1.2.840.113549.1.9.1=#160133",
    ),
    (
        "30223120301e06035504030c1720236c6561642c612b6222635c643c653e663b673d6820",
        "CN=\\ \\#lead\\,a\\+b\\\"c\\\\d\\<e\\>f\\;g\\=h\\ ",
    ),
    ("300b3109300706035504030c00", "CN="),
    ("300c310a300806035504030c0120", "CN=\\ "),
    ("300e310c300a06035504030c03202020", "CN=\\ \\ \\ "),
    ("30123110300e06035504030c07202074776f2020", "CN=\\ \\ two\\ \\ "),
    ("300f310d300b06035504030c0461202062", "CN=a  b"),
    ("300e310c300a06035504030c03612362", "CN=a\\#b"),
    ("300d310b300906035504030c022361", "CN=\\#a"),
    ("300f310d300b06035504030c040d20610d", "CN=\\\r\\ a\\\r"),
    ("300f310d300b06035504030c040a206109", "CN=\n a\t"),
    ("300d310b300906035504030c02615c", "CN=a\\\\"),
    ("300e310c300a06035504030c03615c20", "CN=a\\\\\\ "),
    ("300e310c300a06035504030c03610062", "CN=a\\00b"),
    ("300d310b300906035504030c02e4f6", "CN=\u{fffd}\u{fffd}"),
    (
        "301b3119301706035504030c10eda0807ceda07ce2827cf09f987cc080",
        "CN=\u{fffd}|\u{fffd}|\u{fffd}|\u{fffd}|\u{fffd}\u{fffd}",
    ),
    ("300e310c300a06035504031303612a62", "CN=a*b"),
    ("3010310e300c060355040313054bc3b66c6e", "CN=Köln"),
    ("300e310c300a06035504031603614062", "CN=a@b"),
    ("300c310a300806035504031601ff", "CN=\u{fffd}"),
    ("300f310d300b060355040314044bf66c6e", "CN=K\u{fffd}ln"),
    ("3010310e300c060355040314054b6f656c6e", "CN=Koeln"),
    ("300e310c300a06035504031b0367656e", "CN=gen"),
    ("300f310d300b06035504031e04004b00f6", "CN=\\00K\\00\u{fffd}"),
    ("300f310d300b06035504031e04004b004c", "CN=\\00K\\00L"),
    ("300f310d300b06035504031c040000004b", "CN=#1c040000004b"),
    ("300e310c300a06035504031203313233", "CN=#1203313233"),
    ("300e310c300a06035504031a03766973", "CN=#1a03766973"),
    ("300c310a300806035504030101ff", "CN=#0101ff"),
    (
        "30819031818d30818a060355040304818278787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878",
        "CN=#04818278787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878",
    ),
    (
        "303d310a300806038837030c0161310830060601270c0161310830060601280c0161311b301906146983f09da7ebcfdee0c7a1a7b2c0948cc8f9d7760c0161",
        "2.25.329800735698586629295641978511506172918=#0c0161,1.0=#0c0161,0.39=#0c0161,2.999.3=#0c0161",
    ),
];

#[test]
fn names_are_those_that_java_reads() {
    for text in NAMES {
        assert!(is_distinguished_name(text), "{text:?}");
    }
    for text in NO_NAMES {
        assert!(!is_distinguished_name(text), "{text:?}");
    }
}

#[test]
fn name_with_a_value_of_indefinite_length_is_refused_though_java_takes_it() {
    assert!(!is_distinguished_name("CN=#24800c01610000"));
}

#[test]
fn object_identifier_in_a_name_is_limited_as_in_java() {
    let name = |numbers: usize| format!("1.2{}=a", ".1".repeat(numbers));
    assert!(is_distinguished_name(&name(4095)));
    assert!(!is_distinguished_name(&name(4096)));
    assert!(is_distinguished_name(&format!("1.2.{}=a", "9".repeat(8600))));
    assert!(!is_distinguished_name(&format!("1.2.{}=a", "9".repeat(8700))));
}

#[test]
fn long_text_takes_time_in_proportion_to_its_length() {
    for part in ["CN=a,", "CN=\\\\,", "CN=\",", "\\,", "+", "\"", "1."] {
        let text = part.repeat(200_000);
        let _is_name = is_distinguished_name(&text);
    }
}

#[test]
fn subjects_are_written_as_java_writes_them() {
    for (name, text) in SUBJECTS {
        assert_eq!(subject_name(&certificate(&bytes(name))).as_deref(), Ok(*text), "{name}");
    }
}

#[test]
fn damaged_subject_is_an_error() {
    for (name, error) in [
        // A set in the place of the sequence; a length beyond the end.
        ("3100", NameError::NotACertificate),
        ("3002", NameError::NotACertificate),
        // A sequence in the place of a set; a set without a whole sequence; a type without a value; a value too many.
        ("30023000", NameError::NotAName),
        ("3003310130", NameError::NotAName),
        ("30073105300306012a", NameError::NotAName),
        ("300c310a300806012a0c000c0161", NameError::NotAName),
    ] {
        assert_eq!(subject_name(&certificate(&bytes(name))), Err(error), "{name}");
    }
    // Types: empty, without an end, with a zero at the start of a number, with a number above 128 bits.
    for kind in [&[][..], &[0xaa], &[0x55, 0x80, 1], &[[0x69].as_slice(), &[0xff; 19], &[0x7f]].concat()] {
        let sequence = |tag, content: &[u8]| [&[tag, content.len() as u8], content].concat();
        let attribute = sequence(0x30, &[sequence(6, kind), sequence(0x0c, b"a")].concat());
        let name = sequence(0x30, &sequence(0x31, &attribute));
        assert_eq!(subject_name(&certificate(&name)), Err(NameError::BadType), "{kind:?}");
    }
    assert_eq!(subject_name(&CertificateDer::from(Vec::new())), Err(NameError::NotACertificate));
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits = (0..hexadecimal.len()).step_by(2);
    digits.map(|at| u8::from_str_radix(&hexadecimal[at..at + 2], 16).unwrap()).collect()
}

/// The start of a certificate, as far as its subject.
fn certificate(name: &[u8]) -> CertificateDer<'static> {
    let sequence = |content: &[u8]| {
        [&[0x30, 0x83, 0, (content.len() >> 8) as u8, content.len() as u8], content].concat()
    };
    let before_subject = [0x02, 1, 1, 0x30, 0, 0x30, 0, 0x30, 0];
    CertificateDer::from(sequence(&sequence(&[&before_subject, name].concat())))
}
