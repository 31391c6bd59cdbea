using System.Collections.Concurrent;
using System.Diagnostics.CodeAnalysis;
using System.Threading.Channels;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Logging;
using Microsoft.Extensions.Options;

namespace Glasshouse.Climate;

/// <summary>A measurement from one of the boxes hanging between the tomatoes.</summary>
public sealed record Reading(string SensorId, DateTimeOffset At, double Celsius, double RelativeHumidity)
{
    /// <summary>Vapour pressure deficit in kilopascals (Tetens formula).</summary>
    public double VapourPressureDeficit
    {
        get
        {
            var saturation = 0.61078 * Math.Exp(17.27 * Celsius / (Celsius + 237.3));
            return saturation * (1 - RelativeHumidity / 100);
        }
    }

    public bool IsPlausible => Celsius is > -30 and < 70 && RelativeHumidity is >= 0 and <= 100;
}

public abstract record Command(string ZoneId)
{
    public sealed record SetVent(string ZoneId, int Percent) : Command(ZoneId);
    public sealed record SetHeating(string ZoneId, bool On) : Command(ZoneId);
    public sealed record Mist(string ZoneId, TimeSpan Duration) : Command(ZoneId);
}

public interface IActuatorBus
{
    Task SendAsync(Command command, CancellationToken cancellationToken);
}

public sealed class ZoneOptions
{
    public required string Id { get; init; }
    public required string[] Sensors { get; init; }
    public double DayTarget { get; init; } = 22.0;
    public double NightTarget { get; init; } = 17.0;
    public double MaxDeficit { get; init; } = 1.6;
    public TimeOnly Sunrise { get; init; } = new(6, 30);
    public TimeOnly Sunset { get; init; } = new(20, 0);
}

public sealed class ClimateOptions
{
    public List<ZoneOptions> Zones { get; init; } = [];
    public TimeSpan Period { get; init; } = TimeSpan.FromSeconds(30);
    public TimeSpan StaleAfter { get; init; } = TimeSpan.FromMinutes(5);

    /// <summary>Above this wind speed (m/s) the roof vents stay shut, whatever the thermometer says.</summary>
    public double StormWind { get; init; } = 14.0;
}

/// <summary>
/// Decides, zone by zone, what the vents, the boiler valve and the misters should do. The decisions are
/// pure functions of the latest readings and a little remembered state, which makes them easy to test;
/// everything asynchronous lives in <see cref="GreenhouseController"/>.
/// </summary>
public sealed class ZoneRegulator(ZoneOptions options)
{
    private const double DeadBand = 0.5;
    private const double VentGain = 18.0;          // percent of opening per degree of excess
    private static readonly TimeSpan MistPause = TimeSpan.FromMinutes(12);

    private bool _heating;
    private int _vent;
    private DateTimeOffset _lastMist = DateTimeOffset.MinValue;

    public string ZoneId => options.Id;

    public IEnumerable<Command> Decide(IReadOnlyCollection<Reading> readings, double wind, double stormWind, DateTimeOffset now)
    {
        if (readings.Count == 0)
        {
            // Blind, we choose the state that hurts least: no heat, vents ajar unless it is blowing a gale.
            foreach (var command in Apply(heating: false, vent: wind >= stormWind ? 0 : 15))
                yield return command;
            yield break;
        }

        var temperature = Median(readings.Select(r => r.Celsius));
        var deficit = Median(readings.Select(r => r.VapourPressureDeficit));
        var target = IsDay(now) ? options.DayTarget : options.NightTarget;
        var excess = temperature - target;

        // Hysteresis: switch on below the band, off above it, and otherwise leave well alone.
        var heating = excess switch
        {
            < -DeadBand => true,
            > DeadBand => false,
            _ => _heating,
        };

        var vent = excess <= DeadBand ? 0 : (int)Math.Clamp((excess - DeadBand) * VentGain, 0, 100);
        if (wind >= stormWind)
            vent = 0;
        else if (wind >= stormWind * 0.6)
            vent = Math.Min(vent, 30);

        foreach (var command in Apply(heating, vent))
            yield return command;

        // Wet leaves at night invite botrytis, so misting is a daytime affair.
        if (deficit > options.MaxDeficit && IsDay(now) && now - _lastMist >= MistPause)
        {
            _lastMist = now;
            var seconds = Math.Clamp(4 + 10 * (deficit - options.MaxDeficit), 4, 20);
            yield return new Command.Mist(options.Id, TimeSpan.FromSeconds(seconds));
        }
    }

    private IEnumerable<Command> Apply(bool heating, int vent)
    {
        if (heating != _heating)
        {
            _heating = heating;
            yield return new Command.SetHeating(options.Id, heating);
        }

        // The rack-and-pinion drives wear out; ignore movements nobody would notice.
        if (Math.Abs(vent - _vent) >= 5 || (vent == 0 && _vent != 0))
        {
            _vent = vent;
            yield return new Command.SetVent(options.Id, vent);
        }
    }

    private bool IsDay(DateTimeOffset now)
    {
        var time = TimeOnly.FromTimeSpan(now.TimeOfDay);
        return time.IsBetween(options.Sunrise, options.Sunset);
    }

    private static double Median(IEnumerable<double> values)
    {
        var sorted = values.Order().ToArray();
        var middle = sorted.Length / 2;
        return sorted.Length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }
}

public sealed class GreenhouseController : BackgroundService
{
    private readonly ConcurrentDictionary<string, Reading> _latest = new(StringComparer.OrdinalIgnoreCase);
    private readonly Channel<Command> _outbox = Channel.CreateBounded<Command>(
        new BoundedChannelOptions(256) { SingleReader = true, FullMode = BoundedChannelFullMode.DropOldest });

    private readonly ClimateOptions _options;
    private readonly Dictionary<string, ZoneRegulator> _regulators;
    private readonly IActuatorBus _bus;
    private readonly TimeProvider _time;
    private readonly ILogger<GreenhouseController> _logger;
    private double _wind;

    public GreenhouseController(
        IOptions<ClimateOptions> options, IActuatorBus bus, TimeProvider time, ILogger<GreenhouseController> logger)
    {
        _options = options.Value;
        _bus = bus;
        _time = time;
        _logger = logger;
        _regulators = _options.Zones.ToDictionary(z => z.Id, z => new ZoneRegulator(z));
    }

    /// <summary>Called from the radio gateway's thread for every packet that passed its checksum.</summary>
    public void Accept(Reading reading)
    {
        ArgumentNullException.ThrowIfNull(reading);
        if (!reading.IsPlausible)
        {
            _logger.LogWarning("Sensor {Sensor} claims {Celsius:F1} °C at {Humidity:F0} %; ignored",
                reading.SensorId, reading.Celsius, reading.RelativeHumidity);
            return;
        }

        // Packets may overtake one another on the mesh; never let an old one replace a newer.
        _latest.AddOrUpdate(reading.SensorId, reading, (_, known) => reading.At > known.At ? reading : known);
    }

    public void AcceptWind(double metresPerSecond) => Volatile.Write(ref _wind, metresPerSecond);

    protected override async Task ExecuteAsync(CancellationToken stoppingToken)
    {
        var sender = DrainAsync(stoppingToken);
        using var timer = new PeriodicTimer(_options.Period, _time);
        try
        {
            while (await timer.WaitForNextTickAsync(stoppingToken))
                Regulate();
        }
        catch (OperationCanceledException) when (stoppingToken.IsCancellationRequested)
        {
            _logger.LogInformation("Climate control is stopping");
        }
        finally
        {
            _outbox.Writer.TryComplete();
            await sender;
        }
    }

    private void Regulate()
    {
        var now = _time.GetLocalNow();
        foreach (var zone in _options.Zones)
        {
            var fresh = new List<Reading>(zone.Sensors.Length);
            foreach (var id in zone.Sensors)
            {
                if (TryGetFresh(id, now, out var reading))
                    fresh.Add(reading);
            }

            if (fresh.Count == 0)
                _logger.LogError("Zone {Zone} has no working sensor", zone.Id);

            foreach (var command in _regulators[zone.Id].Decide(fresh, Volatile.Read(ref _wind), _options.StormWind, now))
                _outbox.Writer.TryWrite(command);
        }
    }

    private bool TryGetFresh(string id, DateTimeOffset now, [NotNullWhen(true)] out Reading? reading) =>
        _latest.TryGetValue(id, out reading) && now - reading.At <= _options.StaleAfter;

    private async Task DrainAsync(CancellationToken cancellationToken)
    {
        try
        {
            await foreach (var command in _outbox.Reader.ReadAllAsync(cancellationToken))
            {
                try
                {
                    await _bus.SendAsync(command, cancellationToken);
                }
                catch (IOException e)
                {
                    // One jammed motor must not silence the whole bus.
                    _logger.LogError(e, "Could not deliver {Command}", command);
                }
            }
        }
        catch (OperationCanceledException)
        {
            // Shutting down; whatever is still queued is obsolete by now.
        }
    }
}
