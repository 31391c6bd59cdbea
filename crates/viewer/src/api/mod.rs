//! The addresses, and who answers at each. What they answer stands in `docs/viewer-api.md`.

mod facts;
mod keys;
mod models;
mod tensors;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::middleware;
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use serde::Deserialize;

use crate::answer::{Answer, Answered, Failure};
use crate::ask::Ask;
use crate::guard::{Guard, guard};
use crate::shown::Shown;
use crate::work::Waiting;
use crate::{Session, page};

/// The longest body of a request.
const LONGEST_BODY: usize = 1 << 20;

/// Everything that is answered.
pub fn router(session: Arc<Session>, guarding: Guard) -> Router {
    let of_model = Router::new()
        .route("/summary", of_model(facts::summary))
        .route("/findings", of_files(facts::findings))
        .route("/memory", of_model(facts::memory))
        .route("/keys", of_model(keys::keys))
        .route("/key", of_model(keys::key))
        .route("/tensors", of_model(tensors::tensors))
        .route("/tensor", of_model(tensors::tensor))
        .route("/tensor/tile", of_model(tensors::tile))
        .route("/tensor/rows", of_model(tensors::rows))
        .route("/tensor/statistics", of_model(tensors::statistics));
    let api = Router::new()
        .route("/models", get(models::models))
        .nest("/models/{id}", of_model)
        .fallback(nothing_here);
    Router::new()
        .nest("/{secret}/api/1", api)
        .route("/{secret}/", get(page_file))
        .route("/{secret}/{*file}", get(page_file))
        .with_state(session)
        .layer(DefaultBodyLimit::max(LONGEST_BODY))
        .layer(middleware::from_fn_with_state(guarding, guard))
}

/// The number of a model in an address.
#[derive(Deserialize)]
struct OfModel {
    id: String,
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
    pub model: &'a Shown,
    pub ask: &'a Ask,
    pub waiting: &'a Waiting,
}

/// What answers questions.
type Answering = fn(&Question) -> Answered;

/// Answers a question about a model that keeps the rules and has not changed.
fn of_model(answering: Answering) -> MethodRouter<Arc<Session>> {
    asked(answering, true)
}

/// Answers a question about the files of a model, which may break the rules.
fn of_files(answering: Answering) -> MethodRouter<Arc<Session>> {
    asked(answering, false)
}

fn asked(answering: Answering, needs_model: bool) -> MethodRouter<Arc<Session>> {
    get(async move |State(session): State<Arc<Session>>, Path(of): Path<OfModel>, ask: Ask| {
        let model = session.models.get(&of.id)?;
        let working = session.clone();
        let work = move |waiting: &Waiting| {
            model.require_same()?;
            if needs_model {
                model.model()?;
            }
            let question = Question { session: &working, model: &model, ask: &ask, waiting };
            answering(&question).map_err(|failure| because_of_change(&model, failure))
        };
        session.work.run(work).await
    })
}

/// What cannot be read because the file has just changed is no fault of the machine.
fn because_of_change(model: &Shown, failure: Failure) -> Failure {
    if !failure.status.is_server_error() {
        return failure;
    }
    model.require_same().err().unwrap_or(failure)
}

async fn page_file(Path(of): Path<OfPage>) -> Result<Response, Failure> {
    page::file(&of.file)
}

async fn nothing_here() -> Result<Answer, Failure> {
    Err(Failure::nothing_here())
}
