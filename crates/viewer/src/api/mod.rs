//! The addresses, and who answers at each. What they answer stands in `docs/viewer-api.md`.

mod blocks;
mod bytes;
mod compare;
mod edits;
mod facts;
mod graphs;
mod keys;
mod models;
mod state;
mod templates;
mod tensors;
mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware;
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::answer::{Answered, Failure};
use crate::ask::Ask;
use crate::guard::{Guard, guard};
use crate::shown::Shown;
use crate::work::Waiting;
use crate::{Session, page};

/// The longest body of a request.
const LONGEST_BODY: usize = 1 << 20;

/// Everything that is answered.
pub fn router(session: Arc<Session>, guarding: Guard) -> Router {
    let of_one = [
        ("summary", of_model(facts::summary)),
        ("findings", of_files(facts::findings)),
        ("memory", of_model(facts::memory)),
        ("graph", of_model(graphs::graph)),
        ("graph.svg", of_model(graphs::picture)),
        ("traffic", whatever(state::traffic)),
        ("state", whatever(state::state)),
        ("reload", sent(Needs::Nothing, state::reload)),
        ("keys", of_model(keys::keys)),
        ("key", of_model(keys::key)),
        ("tensors", of_model(tensors::tensors)),
        ("tensor", of_model(tensors::tensor)),
        ("tensor/tile", of_model(tensors::tile)),
        ("tensor/rows", of_model(tensors::rows)),
        ("tensor/statistics", of_model(tensors::statistics)),
        ("tensor/block", of_model(blocks::block)),
        ("map", of_files(bytes::map)),
        ("bytes", of_files(bytes::bytes)),
        ("spans", of_files(bytes::spans)),
        ("tokenizer", of_model(tokens::tokenizer)),
        ("tokens", of_model(tokens::tokens)),
        ("merges", of_model(tokens::merges)),
        ("tokenize", sent(Needs::Model, tokens::tokenize)),
        ("templates", of_model(templates::templates)),
        ("template", sent(Needs::Model, templates::template)),
        ("edit", sent(Needs::Model, edits::edit)),
    ];
    let of_two = [
        ("keys", of_both(compare::keys)),
        ("tensors", of_both(compare::tensors)),
        ("tensor", of_both(compare::tensor)),
        ("tile", of_both(compare::tile)),
    ];
    // The guard has looked at the secret; here it stands for any word.
    let mut router = Router::new()
        .route("/{secret}/", get(page_file))
        .route("/{secret}/{*file}", get(page_file))
        .route("/{secret}/api/1/models", get(models::models));
    for (name, answering) in of_one {
        router = router.route(&format!("/{{secret}}/api/1/models/{{id}}/{name}"), answering);
    }
    for (name, answering) in of_two {
        router = router.route(&format!("/{{secret}}/api/1/compare/{{a}}/{{b}}/{name}"), answering);
    }
    router
        .with_state(session)
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(middleware::from_fn_with_state(guarding, guard))
}

/// The number of a model in an address.
#[derive(Deserialize)]
struct OfModel {
    id: String,
}

/// The numbers of two models in an address.
#[derive(Deserialize)]
struct OfBoth {
    a: String,
    b: String,
}

/// A file of the page in an address.
#[derive(Deserialize)]
struct OfPage {
    #[serde(default)]
    file: String,
}

/// What is asked of a model.
pub struct Question<'a> {
    pub session: &'a Session,
    /// Its number.
    pub id: usize,
    pub model: Arc<Shown>,
    pub ask: &'a Ask,
    pub waiting: &'a Waiting,
}

/// What a question needs of the model before it is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// It keeps the rules, and has not changed.
    Model,
    /// It has not changed.
    Files,
    Nothing,
}

impl Needs {
    fn check(self, model: &Shown) -> Result<(), Failure> {
        if self != Self::Nothing {
            model.require_same()?;
        }
        if self == Self::Model {
            model.model()?;
        }
        Ok(())
    }
}

type Answering = fn(&Question) -> Answered;

/// Answers a question about a model that keeps the rules and has not changed.
fn of_model(answering: Answering) -> MethodRouter<Arc<Session>> {
    asked(Needs::Model, answering)
}

/// Answers a question about the files of a model, which may break the rules.
fn of_files(answering: Answering) -> MethodRouter<Arc<Session>> {
    asked(Needs::Files, answering)
}

/// Answers a question that has an answer also of files that have changed.
fn whatever(answering: Answering) -> MethodRouter<Arc<Session>> {
    asked(Needs::Nothing, answering)
}

fn asked(needs: Needs, answering: Answering) -> MethodRouter<Arc<Session>> {
    get(async move |State(session): State<Arc<Session>>, Path(of): Path<OfModel>, ask: Ask| {
        let working = session.clone();
        let work = move |waiting: &Waiting| {
            let (id, model) = working.models.get(&of.id)?;
            needs.check(&model)?;
            let far = model.files.is_far();
            let question = Question { session: &working, id, model, ask: &ask, waiting };
            let answered = working.work.on_threads(far, || answering(&question));
            answered.map_err(|failure| because_of_change(&question.model, failure))
        };
        session.work.run(work).await
    })
}

/// Answers a question that comes with a document.
fn sent<T: DeserializeOwned + Send + 'static>(
    needs: Needs,
    answering: fn(Question, T) -> Answered,
) -> MethodRouter<Arc<Session>> {
    post(
        async move |State(session): State<Arc<Session>>,
                    Path(of): Path<OfModel>,
                    ask: Ask,
                    headers: HeaderMap,
                    body: Bytes| {
            let document = document(&headers, &body)?;
            let working = session.clone();
            let work = move |waiting: &Waiting| {
                let (id, model) = working.models.get(&of.id)?;
                needs.check(&model)?;
                let question = Question { session: &working, id, model, ask: &ask, waiting };
                answering(question, document)
            };
            session.work.run(work).await
        },
    )
}

/// The document of a request.
fn document<T: DeserializeOwned>(headers: &HeaderMap, body: &[u8]) -> Result<T, Failure> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|of| of.to_str().ok());
    let content_type = content_type.and_then(|of| of.split(';').next()).map(str::trim);
    if !content_type.is_some_and(|of| of.eq_ignore_ascii_case("application/json")) {
        let failure = Failure::request("the body is to be `application/json`");
        return Err(Failure { status: StatusCode::UNSUPPORTED_MEDIA_TYPE, ..failure });
    }
    serde_json::from_slice(body)
        .map_err(|fault| Failure::request(format!("the body cannot be understood: {fault}")))
}

fn of_both(answering: fn(&compare::Question) -> Answered) -> MethodRouter<Arc<Session>> {
    get(async move |State(session): State<Arc<Session>>, Path(of): Path<OfBoth>, ask: Ask| {
        let working = session.clone();
        let work = move |waiting: &Waiting| {
            let ((_, a), (_, b)) = (working.models.get(&of.a)?, working.models.get(&of.b)?);
            Needs::Model.check(&a)?;
            Needs::Model.check(&b)?;
            let far = a.files.is_far() || b.files.is_far();
            let question = compare::Question { a: &a, b: &b, ask: &ask, waiting };
            let answered = working.work.on_threads(far, || answering(&question));
            answered.map_err(|failure| because_of_change(&b, because_of_change(&a, failure)))
        };
        session.work.run(work).await
    })
}

/// What cannot be read because the file has just changed is no fault of the machine; what a far server does not
/// give is its own.
fn because_of_change(model: &Shown, failure: Failure) -> Failure {
    if failure.status != StatusCode::INTERNAL_SERVER_ERROR {
        return failure;
    }
    if model.files.is_far() {
        return Failure { status: StatusCode::BAD_GATEWAY, ..failure };
    }
    model.require_same().err().unwrap_or(failure)
}

async fn page_file(Path(of): Path<OfPage>) -> Result<Response, Failure> {
    page::file(&of.file)
}
