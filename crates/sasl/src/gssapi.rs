//! SASL GSSAPI (RFC 4752) without a security layer: both sides of a login, over the security context of a Kerberos
//! library.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

/// The layers and the greatest message that a server offers: no layer, and the size that Java's server names.
const OFFER: [u8; 4] = [NO_LAYER, 1, 0, 0];
/// The answer of a client before the identity: no layer.
const CHOICE: [u8; 4] = [NO_LAYER, 0, 0, 0];
/// The bit of an offer that stands for no security layer.
const NO_LAYER: u8 = 1;
/// The most steps of a login. Kerberos takes three.
const STEPS_MAX: u32 = 8;

/// A security context, as a GSSAPI library has one. Its errors are texts of the library.
pub trait SecurityContext {
    /// Takes a token of the other side, which is empty at the beginning of a client's context.
    ///
    /// # Errors
    /// The library's text, if the other side is not who it has to be.
    fn establish(&mut self, token: &[u8]) -> Result<ContextStep, String>;

    /// Protects a message against changes.
    ///
    /// # Errors
    /// The library's text.
    fn wrap(&mut self, message: &[u8]) -> Result<Vec<u8>, String>;

    /// The message in a protected one.
    ///
    /// # Errors
    /// The library's text, if the message is not from the other side.
    fn unwrap(&mut self, wrapped: &[u8]) -> Result<Vec<u8>, String>;

    /// The principal that has begun the context, such as `client@EXAMPLE.COM`.
    ///
    /// # Errors
    /// The library's text.
    fn initiator(&self) -> Result<String, String>;
}

/// A context's answer to the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextStep {
    /// The next token, if there is one.
    pub token: Option<Vec<u8>>,
    /// Whether the context is established on this side.
    pub is_established: bool,
}

/// Why a login fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GssapiError {
    /// The library refuses.
    #[error("Kerberos: {0}")]
    Library(String),
    /// A token that should have no bytes, or should have some.
    #[error("the other side does not keep to the steps of GSSAPI")]
    OutOfTurn,
    /// A message about layers that is no such message.
    #[error("the other side's message about security layers is malformed")]
    Malformed,
    /// The other side insists on a security layer.
    #[error("the other side insists on a security layer; ZooKeeper's protocol has none")]
    NeedsLayer,
    /// The context takes more steps than one of Kerberos.
    #[error("the login takes more than {STEPS_MAX} steps")]
    TooManySteps,
}

/// A server's answer to a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GssapiAnswer {
    /// Send this token, and wait for the next one.
    Challenge(Vec<u8>),
    /// The login is complete.
    Complete {
        /// The principal of the client, as Kerberos has proven it.
        principal: String,
        /// The identity that the client asks for; empty for its own.
        wanted: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ServerStage {
    Establishing,
    /// The client answers the last token of the context with an empty one.
    Established,
    /// The layers are offered.
    Offered,
    Over,
}

/// The server's side of a login.
#[derive(Debug)]
pub struct GssapiServer<C> {
    context: C,
    stage: ServerStage,
    steps: u32,
}

impl<C: SecurityContext> GssapiServer<C> {
    /// Begins a login.
    pub fn new(context: C) -> GssapiServer<C> {
        GssapiServer { context, stage: ServerStage::Establishing, steps: 0 }
    }

    /// A token of the client has come.
    ///
    /// # Errors
    /// If the login has failed. It is over then.
    pub fn step(&mut self, token: &[u8]) -> Result<GssapiAnswer, GssapiError> {
        self.steps += 1;
        let answer = match self.steps > STEPS_MAX {
            true => Err(GssapiError::TooManySteps),
            false => self.answer(token),
        };
        if answer.is_err() {
            self.stage = ServerStage::Over;
        }
        answer
    }

    fn answer(&mut self, token: &[u8]) -> Result<GssapiAnswer, GssapiError> {
        match self.stage {
            ServerStage::Establishing if token.is_empty() => Err(GssapiError::OutOfTurn),
            ServerStage::Establishing => {
                let step = self.context.establish(token).map_err(GssapiError::Library)?;
                match (step.is_established, step.token) {
                    (true, None) => self.offer(),
                    (is_established, token) => {
                        if is_established {
                            self.stage = ServerStage::Established;
                        }
                        Ok(GssapiAnswer::Challenge(token.unwrap_or_default()))
                    }
                }
            }
            ServerStage::Established if token.is_empty() => self.offer(),
            ServerStage::Offered => {
                let choice = self.context.unwrap(token).map_err(GssapiError::Library)?;
                let (layer, wanted) = choice.split_first_chunk::<4>().ok_or(GssapiError::Malformed)?;
                if layer[0] != NO_LAYER {
                    return Err(GssapiError::NeedsLayer);
                }
                let wanted = core::str::from_utf8(wanted).map_err(|_| GssapiError::Malformed)?.to_string();
                let principal = self.context.initiator().map_err(GssapiError::Library)?;
                self.stage = ServerStage::Over;
                Ok(GssapiAnswer::Complete { principal, wanted })
            }
            ServerStage::Established | ServerStage::Over => Err(GssapiError::OutOfTurn),
        }
    }

    fn offer(&mut self) -> Result<GssapiAnswer, GssapiError> {
        self.stage = ServerStage::Offered;
        self.context.wrap(&OFFER).map(GssapiAnswer::Challenge).map_err(GssapiError::Library)
    }
}

/// A client's next action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GssapiStep {
    /// Send this token, and wait for the answer.
    Send(Vec<u8>),
    /// The login is complete on this side.
    Complete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ClientStage {
    Establishing,
    /// The context is established; the server offers layers next.
    Established,
    /// A layer is chosen.
    Chosen,
    Over,
}

/// The client's side of a login.
#[derive(Debug)]
pub struct GssapiClient<C> {
    context: C,
    stage: ClientStage,
    steps: u32,
}

impl<C: SecurityContext> GssapiClient<C> {
    /// Begins a login.
    pub fn new(context: C) -> GssapiClient<C> {
        GssapiClient { context, stage: ClientStage::Establishing, steps: 0 }
    }

    /// Takes a token of the server. The first call has none, and neither has the last one.
    ///
    /// # Errors
    /// If the login has failed, or the server has not proven who it is. The login is over then.
    pub fn step(&mut self, token: Option<&[u8]>) -> Result<GssapiStep, GssapiError> {
        self.steps += 1;
        let next = match self.steps > STEPS_MAX {
            true => Err(GssapiError::TooManySteps),
            false => self.next(token.unwrap_or_default()),
        };
        if next.is_err() {
            self.stage = ClientStage::Over;
        }
        next
    }

    fn next(&mut self, token: &[u8]) -> Result<GssapiStep, GssapiError> {
        match self.stage {
            // A server without Kerberos answers the first token with an empty one.
            ClientStage::Establishing if token.is_empty() && self.steps > 1 => Err(GssapiError::OutOfTurn),
            ClientStage::Establishing => {
                let step = self.context.establish(token).map_err(GssapiError::Library)?;
                if step.is_established {
                    self.stage = ClientStage::Established;
                }
                Ok(GssapiStep::Send(step.token.unwrap_or_default()))
            }
            ClientStage::Established => {
                let offer = self.context.unwrap(token).map_err(GssapiError::Library)?;
                let layers: [u8; 4] = offer.try_into().map_err(|_| GssapiError::Malformed)?;
                if layers[0] & NO_LAYER == 0 {
                    return Err(GssapiError::NeedsLayer);
                }
                self.stage = ClientStage::Chosen;
                self.context.wrap(&CHOICE).map(GssapiStep::Send).map_err(GssapiError::Library)
            }
            ClientStage::Chosen if token.is_empty() => {
                self.stage = ClientStage::Over;
                Ok(GssapiStep::Complete)
            }
            ClientStage::Chosen | ClientStage::Over => Err(GssapiError::OutOfTurn),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, vec};

    /// A context whose tokens are given, and whose wrapped messages begin with `w`.
    #[derive(Debug)]
    struct Scripted(Vec<Result<ContextStep, String>>);

    fn said(token: Option<&str>, is_established: bool) -> Result<ContextStep, String> {
        Ok(ContextStep { token: token.map(|text| text.as_bytes().to_vec()), is_established })
    }

    impl SecurityContext for Scripted {
        fn establish(&mut self, _: &[u8]) -> Result<ContextStep, String> {
            self.0.remove(0)
        }

        fn wrap(&mut self, message: &[u8]) -> Result<Vec<u8>, String> {
            Ok([b"w", message].concat())
        }

        fn unwrap(&mut self, wrapped: &[u8]) -> Result<Vec<u8>, String> {
            wrapped.strip_prefix(b"w").map(<[u8]>::to_vec).ok_or_else(|| "not wrapped".into())
        }

        fn initiator(&self) -> Result<String, String> {
            Ok("client@R".into())
        }
    }

    fn server() -> GssapiServer<Scripted> {
        GssapiServer::new(Scripted(vec![said(Some("rep"), true)]))
    }

    fn client() -> GssapiClient<Scripted> {
        GssapiClient::new(Scripted(vec![said(Some("req"), false), said(None, true)]))
    }

    fn challenge(token: &[u8]) -> Result<GssapiAnswer, GssapiError> {
        Ok(GssapiAnswer::Challenge(token.to_vec()))
    }

    fn complete(wanted: &str) -> Result<GssapiAnswer, GssapiError> {
        Ok(GssapiAnswer::Complete { principal: "client@R".into(), wanted: wanted.into() })
    }

    #[test]
    fn both_sides_come_to_an_end_in_the_steps_of_java() {
        let (mut client, mut server) = (client(), server());
        assert_eq!(client.step(None), Ok(GssapiStep::Send(b"req".to_vec())));
        assert_eq!(server.step(b"req"), challenge(b"rep"));
        assert_eq!(client.step(Some(b"rep")), Ok(GssapiStep::Send(vec![])));
        assert_eq!(server.step(b""), challenge(b"w\x01\x01\x00\x00"));
        let choice = b"w\x01\x00\x00\x00".to_vec();
        assert_eq!(client.step(Some(b"w\x01\x01\x00\x00")), Ok(GssapiStep::Send(choice.clone())));
        assert_eq!(server.step(&choice), complete(""));
        assert_eq!(client.step(None), Ok(GssapiStep::Complete));
    }

    #[test]
    fn a_context_without_a_last_token_is_followed_by_the_offer() {
        let mut server = GssapiServer::new(Scripted(vec![said(None, true)]));
        assert_eq!(server.step(b"req"), challenge(b"w\x01\x01\x00\x00"));
        assert_eq!(server.step(b"w\x01\x00\x00\x00me"), complete("me"));
    }

    #[test]
    fn tokens_out_of_turn_are_refused_and_end_the_login() {
        let mut empty = server();
        assert_eq!(empty.step(b""), Err(GssapiError::OutOfTurn));
        assert_eq!(empty.step(b"req"), Err(GssapiError::OutOfTurn));
        let mut full = server();
        full.step(b"req").unwrap();
        assert_eq!(full.step(b"more"), Err(GssapiError::OutOfTurn));
        let mut done = server();
        for token in [&b"req"[..], b"", b"w\x01\x00\x00\x00"] {
            done.step(token).unwrap();
        }
        assert_eq!(done.step(b"req"), Err(GssapiError::OutOfTurn));
    }

    #[test]
    fn choices_that_are_no_choice_are_refused() {
        for (choice, why) in [
            (&b"\x01\x00\x00\x00"[..], GssapiError::Library("not wrapped".into())),
            (b"w\x01\x00\x00", GssapiError::Malformed),
            (b"w\x01\x00\x00\x00\xff", GssapiError::Malformed),
            (b"w\x04\x00\x00\x00", GssapiError::NeedsLayer),
        ] {
            let mut server = server();
            server.step(b"req").unwrap();
            server.step(b"").unwrap();
            assert_eq!(server.step(choice), Err(why), "{choice:?}");
        }
    }

    #[test]
    fn a_context_that_never_ends_is_refused() {
        let endless = (0..20).map(|at| said(Some(&format!("{at}")), false)).collect();
        let mut server = GssapiServer::new(Scripted(endless));
        let failed = (0..20).map(|_| server.step(b"x")).position(|step| step.is_err());
        assert_eq!(failed, Some(STEPS_MAX as usize));
    }

    #[test]
    fn a_server_without_kerberos_is_refused() {
        let mut client = client();
        client.step(None).unwrap();
        assert_eq!(client.step(None), Err(GssapiError::OutOfTurn));
    }

    #[test]
    fn a_server_that_never_ends_is_refused_after_as_many_steps() {
        let endless = (0..20).map(|at| said(Some(&format!("{at}")), false)).collect();
        let mut client = GssapiClient::new(Scripted(endless));
        let failed = (0..20).map(|_| client.step(Some(b"x"))).position(|step| step.is_err());
        assert_eq!(failed, Some(STEPS_MAX as usize));
    }

    #[test]
    fn a_server_that_says_more_after_the_choice_of_a_layer_is_refused() {
        let mut client = client();
        for token in [None, Some(&b"rep"[..]), Some(b"w\x01\x01\x00\x00")] {
            client.step(token).unwrap();
        }
        assert_eq!(client.step(Some(b"more")), Err(GssapiError::OutOfTurn));
    }

    #[test]
    fn a_client_does_not_end_before_its_server_is_proven_and_has_offered() {
        let mut early = client();
        early.step(None).unwrap();
        early.step(Some(b"rep")).unwrap();
        assert_eq!(early.step(None), Err(GssapiError::Library("not wrapped".into())));
        let mut layered = client();
        layered.step(None).unwrap();
        layered.step(Some(b"rep")).unwrap();
        assert_eq!(layered.step(Some(b"w\x04\x00\x00\x00")), Err(GssapiError::NeedsLayer));
    }
}
