# Reading speed and typeface: analysis of a within-subject experiment.
#
# Forty-eight people read short passages set in three typefaces at two sizes. Each
# trial gives the time per word and the answer to a comprehension question. We ask
#
#   1. whether the typeface changes the speed, size held constant;
#   2. whether any gain in speed is paid for with comprehension;
#   3. how many readers a replication would need.
#
# Usage: Rscript reading_speed_study.R trials.csv readers.csv results/

suppressPackageStartupMessages({
  library(dplyr)
  library(tidyr)
  library(readr)
  library(ggplot2)
  library(lme4)
})

options(dplyr.summarise.inform = FALSE, digits = 4)
set.seed(1848)

typefaces <- c("garamond", "helvetica", "atkinson")

# ---- Reading and checking -----------------------------------------------------

#' Load the trials and drop those that cannot be honest readings.
#'
#' Nobody reads faster than 60 ms per word, and a pause of more than two seconds
#' per word means that the reader looked out of the window.
#'
#' @param path CSV file with one row per trial.
#' @return A tibble with the additional column `ms_per_word`; the number of
#'   rejected rows is attached as the attribute `rejected`.
load_trials <- function(path) {
  raw <- read_csv(
    path,
    col_types = cols(
      reader  = col_character(),
      passage = col_character(),
      face    = col_factor(levels = typefaces),
      size_pt = col_integer(),
      words   = col_integer(),
      seconds = col_double(),
      correct = col_logical(),
      order   = col_integer()
    )
  )
  stopifnot(
    "unknown typeface" = !anyNA(raw$face),
    "duplicated trials" = !anyDuplicated(raw[c("reader", "passage")])
  )

  clean <- raw |>
    mutate(ms_per_word = 1000 * seconds / words) |>
    filter(between(ms_per_word, 60, 2000)) |>
    mutate(
      size = factor(size_pt, levels = c(9L, 12L), labels = c("small", "large")),
      trial_c = as.numeric(scale(order))
    )
  attr(clean, "rejected") <- nrow(raw) - nrow(clean)
  clean
}

# ---- Description --------------------------------------------------------------

#' Geometric mean with a percentile bootstrap over readers, not over trials:
#' the trials of one person resemble each other.
geo_mean_ci <- function(data, times = 2000, level = 0.95) {
  per_reader <- tapply(log(data$ms_per_word), data$reader, mean)
  draws <- replicate(times, mean(sample(per_reader, replace = TRUE)))
  tail <- (1 - level) / 2
  bounds <- quantile(draws, c(tail, 1 - tail), names = FALSE)
  tibble(
    estimate = exp(mean(per_reader)),
    lower = exp(bounds[1]),
    upper = exp(bounds[2]),
    readers = length(per_reader)
  )
}

describe <- function(trials) {
  trials |>
    group_by(face, size) |>
    group_modify(\(group, key) {
      bind_cols(geo_mean_ci(group), accuracy = mean(group$correct))
    }) |>
    ungroup()
}

# ---- Models -------------------------------------------------------------------

fit_speed <- function(trials) {
  # Times are skewed, their logarithms nearly symmetric. Passages differ in
  # difficulty, people in speed, and people get faster as the session goes on.
  full <- lmer(
    log(ms_per_word) ~ face * size + trial_c + (1 + trial_c | reader) + (1 | passage),
    data = trials, REML = FALSE,
    control = lmerControl(optimizer = "bobyqa")
  )
  if (isSingular(full)) {
    message("the random slope is degenerate; falling back to intercepts")
    full <- update(full, . ~ face * size + trial_c + (1 | reader) + (1 | passage))
  }
  additive <- update(full, . ~ . - face:size)
  no_face <- update(additive, . ~ . - face)
  list(
    full = full,
    additive = additive,
    interaction = anova(additive, full),
    main = anova(no_face, additive)
  )
}

fit_comprehension <- function(trials) {
  glmer(
    correct ~ face + size + scale(log(ms_per_word)) + (1 | reader) + (1 | passage),
    data = trials, family = binomial(),
    control = glmerControl(optimizer = "bobyqa")
  )
}

#' Pairwise contrasts between typefaces as percentages, Holm-adjusted.
face_contrasts <- function(model) {
  beta <- fixef(model)
  v <- as.matrix(vcov(model))
  pairs <- combn(typefaces, 2, simplify = FALSE)

  rows <- lapply(pairs, function(pair) {
    weights <- setNames(numeric(length(beta)), names(beta))
    for (i in 1:2) {
      name <- paste0("face", pair[i])
      # The first level is the reference and has no coefficient of its own.
      if (name %in% names(weights)) weights[name] <- c(-1, 1)[i]
    }
    estimate <- sum(weights * beta)
    se <- sqrt(drop(t(weights) %*% v %*% weights))
    tibble(
      contrast = paste(rev(pair), collapse = " vs "),
      percent = 100 * expm1(estimate),
      lower = 100 * expm1(estimate - 1.96 * se),
      upper = 100 * expm1(estimate + 1.96 * se),
      p = 2 * pnorm(-abs(estimate / se))
    )
  })
  bind_rows(rows) |> mutate(p_holm = p.adjust(p, "holm"))
}

# ---- Power for a replication ----------------------------------------------------

#' Share of simulated replications in which the typeface effect is significant.
#'
#' Works on reader means, which is what a paired design boils down to: the
#' variance between readers cancels, and only the residual noise remains.
power_for <- function(n_readers, effect, sd_residual, trials_per_face, runs = 1000) {
  se_mean <- sd_residual / sqrt(trials_per_face)
  significant <- vapply(seq_len(runs), function(i) {
    difference <- rnorm(n_readers, effect, sqrt(2) * se_mean)
    t.test(difference)$p.value < 0.05
  }, logical(1))
  mean(significant)
}

# ---- Figures ------------------------------------------------------------------

plot_speed <- function(summary_table) {
  ggplot(summary_table, aes(estimate, face, colour = size, xmin = lower, xmax = upper)) +
    geom_pointrange(position = position_dodge(width = 0.4)) +
    scale_x_log10(name = "Milliseconds per word (log scale)") +
    scale_colour_manual(values = c(small = "#b2572d", large = "#2d6a8e"), name = "Type size") +
    labs(y = NULL, title = "Reading time by typeface", subtitle = "Geometric means, 95 % bootstrap intervals") +
    theme_minimal(base_size = 11) +
    theme(panel.grid.major.y = element_blank(), legend.position = "bottom")
}

# ---- Main ---------------------------------------------------------------------

main <- function(args = commandArgs(trailingOnly = TRUE)) {
  if (length(args) != 3) {
    stop("expected three arguments: trials, readers, output directory", call. = FALSE)
  }
  out <- args[3]
  dir.create(out, showWarnings = FALSE, recursive = TRUE)

  readers <- read_csv(args[2], show_col_types = FALSE)
  trials <- load_trials(args[1])
  message(attr(trials, "rejected"), " trials rejected as implausible")

  orphans <- setdiff(trials$reader, readers$reader)
  if (length(orphans) > 0) {
    warning("no demographic record for: ", toString(orphans))
  }

  table <- describe(trials)
  print(table)
  ggsave(file.path(out, "speed.pdf"), plot_speed(table), width = 14, height = 8, units = "cm")

  speed <- fit_speed(trials)
  print(speed$interaction)
  print(speed$main)
  contrasts <- face_contrasts(speed$additive)
  write_csv(contrasts, file.path(out, "contrasts.csv"))

  comprehension <- fit_comprehension(trials)
  print(summary(comprehension)$coefficients)

  smallest <- min(abs(log1p(contrasts$percent / 100)))
  grid <- expand_grid(n = seq(20, 120, by = 20), factor = c(0.5, 1)) |>
    rowwise() |>
    mutate(power = power_for(n, factor * smallest, sigma(speed$additive), trials_per_face = 12)) |>
    ungroup() |>
    pivot_wider(names_from = factor, names_prefix = "effect_x", values_from = power)
  print(grid)
  write_csv(grid, file.path(out, "power.csv"))

  writeLines(capture.output(sessionInfo()), file.path(out, "session.txt"))
  invisible(NULL)
}

if (!interactive()) main()
