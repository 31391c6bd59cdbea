package org.example.hiking.trail

import kotlin.math.abs
import kotlin.math.asin
import kotlin.math.cos
import kotlin.math.pow
import kotlin.math.sin
import kotlin.math.sqrt
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds
import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.MutableStateFlow
import kotlinx.coroutines.flow.StateFlow
import kotlinx.coroutines.flow.asStateFlow
import kotlinx.coroutines.flow.flow
import kotlinx.coroutines.flow.update

private const val EARTH_RADIUS_M = 6_371_008.8

/** A raw fix, just as the receiver delivered it. */
data class Fix(
    val epochMillis: Long,
    val latitude: Double,
    val longitude: Double,
    val altitude: Double? = null,
    val accuracy: Float,
)

/** Great-circle distance in metres (haversine, which behaves well for small angles). */
infix fun Fix.distanceTo(other: Fix): Double {
    val phi1 = Math.toRadians(latitude)
    val phi2 = Math.toRadians(other.latitude)
    val dPhi = phi2 - phi1
    val dLambda = Math.toRadians(other.longitude - longitude)
    val a = sin(dPhi / 2).pow(2) + cos(phi1) * cos(phi2) * sin(dLambda / 2).pow(2)
    return 2 * EARTH_RADIUS_M * asin(sqrt(a.coerceIn(0.0, 1.0)))
}

infix fun Fix.elapsedTo(other: Fix): Duration = (other.epochMillis - epochMillis).milliseconds

sealed interface TrailState {
    data object Idle : TrailState

    data class Recording(val summary: Summary, val resting: Boolean) : TrailState

    data class Finished(val summary: Summary, val track: List<Fix>) : TrailState
}

data class Summary(
    val distance: Double = 0.0,
    val ascent: Double = 0.0,
    val descent: Double = 0.0,
    val moving: Duration = Duration.ZERO,
    val total: Duration = Duration.ZERO,
) {
    /** Average walking speed in km/h, or null until there is something to divide by. */
    val speed: Double?
        get() = moving.takeIf { it >= 10.seconds }
            ?.let { distance / it.inWholeMilliseconds * 3_600 }
}

/**
 * Drops fixes that would only add noise: inaccurate ones, those out of order, and leaps no hiker
 * could have made. After [maxRejections] leaps in a row the filter gives in, since by then the
 * likelier explanation is that the *previous* position was wrong.
 */
fun Flow<Fix>.plausible(
    maxAccuracy: Float = 25f,
    maxSpeed: Double = 8.0,
    maxRejections: Int = 5,
): Flow<Fix> = flow {
    var last: Fix? = null
    var rejected = 0
    collect { fix ->
        val previous = last
        when {
            fix.accuracy > maxAccuracy -> return@collect
            previous == null -> Unit
            fix.epochMillis <= previous.epochMillis -> return@collect
            (previous distanceTo fix) / (previous elapsedTo fix).inWholeMilliseconds * 1_000 > maxSpeed -> {
                if (++rejected < maxRejections) return@collect
            }
        }
        rejected = 0
        last = fix
        emit(fix)
    }
}

/**
 * Accumulates climb with hysteresis. Barometers and satellites both wobble by a few metres, and
 * naively summing every positive difference turns a stroll along a canal into an alpine tour.
 */
internal class ClimbMeter(private val threshold: Double = 6.0) {
    private var reference = Double.NaN
    var ascent = 0.0
        private set
    var descent = 0.0
        private set

    fun add(altitude: Double) {
        if (reference.isNaN()) {
            reference = altitude
            return
        }
        val change = altitude - reference
        if (abs(change) < threshold) return
        if (change > 0) ascent += change else descent -= change
        reference = altitude
    }
}

class TrailRecorder(private val restSpeed: Double = 0.3) {
    private val track = mutableListOf<Fix>()
    private var climb = ClimbMeter()
    private val _state = MutableStateFlow<TrailState>(TrailState.Idle)

    val state: StateFlow<TrailState> = _state.asStateFlow()

    /** Suspends for as long as [fixes] keeps emitting; cancel the coroutine to pause. */
    suspend fun record(fixes: Flow<Fix>) {
        check(_state.value !is TrailState.Finished) { "this trail has been closed; start a new recorder" }
        fixes.plausible().collect(::append)
    }

    private fun append(fix: Fix) {
        val previous = track.lastOrNull()
        track += fix
        fix.altitude?.let(climb::add)
        _state.update { current ->
            val before = (current as? TrailState.Recording)?.summary ?: Summary()
            if (previous == null) return@update TrailState.Recording(before, resting = true)

            val step = previous distanceTo fix
            val time = previous elapsedTo fix
            val resting = step / time.inWholeMilliseconds * 1_000 < restSpeed
            TrailState.Recording(
                summary = before.copy(
                    distance = if (resting) before.distance else before.distance + step,
                    ascent = climb.ascent,
                    descent = climb.descent,
                    moving = if (resting) before.moving else before.moving + time,
                    total = before.total + time,
                ),
                resting = resting,
            )
        }
    }

    fun finish(tolerance: Double = 4.0): TrailState.Finished {
        val summary = (_state.value as? TrailState.Recording)?.summary ?: Summary()
        return TrailState.Finished(summary, simplify(track, tolerance)).also { _state.value = it }
    }
}

/**
 * Ramer-Douglas-Peucker with an explicit stack, because a nine-hour track recorded once a second
 * would be unkind to recursion in the worst case.
 */
fun simplify(points: List<Fix>, tolerance: Double): List<Fix> {
    if (points.size < 3) return points.toList()
    val keep = BooleanArray(points.size).apply {
        set(0, true)
        set(lastIndex, true)
    }
    val pending = ArrayDeque(listOf(0 to points.lastIndex))
    while (pending.isNotEmpty()) {
        val (from, to) = pending.removeLast()
        val farthest = (from + 1 until to).maxByOrNull { offTrack(points[it], points[from], points[to]) } ?: continue
        if (offTrack(points[farthest], points[from], points[to]) <= tolerance) continue
        keep[farthest] = true
        pending += from to farthest
        pending += farthest to to
    }
    return points.filterIndexed { i, _ -> keep[i] }
}

/** Distance of [p] from the segment [a]-[b] on a locally flat map. */
private fun offTrack(p: Fix, a: Fix, b: Fix): Double {
    val shrink = cos(Math.toRadians(a.latitude))
    fun east(f: Fix) = Math.toRadians(f.longitude - a.longitude) * EARTH_RADIUS_M * shrink
    fun north(f: Fix) = Math.toRadians(f.latitude - a.latitude) * EARTH_RADIUS_M
    val (bx, by) = east(b) to north(b)
    val (px, py) = east(p) to north(p)
    val lengthSquared = bx * bx + by * by
    val t = if (lengthSquared == 0.0) 0.0 else ((px * bx + py * by) / lengthSquared).coerceIn(0.0, 1.0)
    return sqrt((px - t * bx).pow(2) + (py - t * by).pow(2))
}
