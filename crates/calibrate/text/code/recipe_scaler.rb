# frozen_string_literal: true

require "optparse"

# Scales recipes written in a plain notation and prints quantities that a cook
# can actually measure:
#
#   = Lentil soup (serves 4)
#   - 250 g brown lentils
#   - 1 1/2 tbsp olive oil
#   - 2 carrots, diced
#   - salt
#
#   $ recipe_scaler --for 7 soup.txt
module Recipes
  # A volume or mass together with the units it may be promoted to.
  class Unit
    attr_reader :name, :base, :factor, :step

    def initialize(name, base, factor, step)
      @name = name
      @base = base
      @factor = Rational(factor)
      @step = Rational(step)
    end

    TABLE = [
      new("g", :mass, 1, 5), new("kg", :mass, 1000, 1/20r),
      new("tsp", :volume, 5, 1/4r), new("tbsp", :volume, 15, 1/2r),
      new("ml", :volume, 1, 10), new("l", :volume, 1000, 1/20r)
    ].to_h { |unit| [unit.name, unit] }.freeze

    def self.[](name) = TABLE[name]

    # Spoons stay spoons while there are few of them; nobody wants to count out
    # eleven tablespoons of milk.
    def self.best_for(amount, original)
      value = amount * original.factor
      case original.base
      when :mass then value >= 1000 ? TABLE["kg"] : TABLE["g"]
      when :volume
        return value >= 1000 ? TABLE["l"] : TABLE["ml"] if %w[ml l].include?(original.name) || value > 90

        value >= 15 ? TABLE["tbsp"] : TABLE["tsp"]
      end
    end
  end

  Ingredient = Struct.new(:amount, :unit, :text, keyword_init: true) do
    NUMBER = %r{(?<whole>\d+(?:\.\d+)?)?(?:\s*(?<num>\d+)/(?<den>[1-9]\d*))?}

    def self.parse(line)
      # "1/2" must not be read as a whole number followed by rubbish.
      if (m = line.match(%r{\A(?<num>\d+)/(?<den>[1-9]\d*)\s+(?<rest>.+)}))
        amount = Rational(m[:num].to_i, m[:den].to_i)
      elsif (m = line.match(/\A#{NUMBER}\s+(?<rest>.+)/)) && m[:whole]
        amount = m[:whole].to_r
        amount += Rational(m[:num].to_i, m[:den].to_i) if m[:num]
      else
        return new(text: line)
      end

      word, tail = m[:rest].split(" ", 2)
      unit = Unit[word]
      new(amount: amount, unit: unit, text: unit ? tail.to_s : m[:rest])
    end

    def scale(factor)
      return self unless amount

      scaled = amount * factor
      return dup.tap { |copy| copy.amount = [round_to(scaled, 1/2r), 1/2r].max } unless unit

      better = Unit.best_for(scaled, unit)
      converted = round_to(scaled * unit.factor / better.factor, better.step)
      self.class.new(amount: [converted, better.step].max, unit: better, text: text)
    end

    def to_s
      [amount && quantity, unit&.name, text].compact.join(" ")
    end

    private

    def round_to(value, step) = (value / step).round * step

    GLYPHS = { 1/4r => "¼", 1/2r => "½", 3/4r => "¾" }.freeze

    def quantity
      whole, fraction = amount.divmod(1)
      return whole.to_s if fraction.zero?
      return "#{whole.zero? ? nil : whole}#{GLYPHS[fraction]}" if GLYPHS.key?(fraction)

      format("%.2f", amount).sub(/0+\z/, "")
    end
  end

  class Recipe
    HEADER = /\A=\s*(?<title>.+?)\s*\(serves (?<servings>\d+)\)\s*\z/

    attr_reader :title, :servings, :lines

    def self.parse(io)
      header = io.gets.to_s.match(HEADER) or raise ArgumentError, "first line must read '= Title (serves N)'"
      lines = io.each_line(chomp: true).map do |line|
        line.start_with?("- ") ? Ingredient.parse(line.delete_prefix("- ").strip) : line
      end
      new(header[:title], Integer(header[:servings], 10), lines)
    end

    def initialize(title, servings, lines)
      raise ArgumentError, "a recipe has to serve somebody" unless servings.positive?

      @title = title
      @servings = servings
      @lines = lines
    end

    def for(guests)
      factor = Rational(guests, servings)
      self.class.new(title, guests, lines.map { |l| l.is_a?(Ingredient) ? l.scale(factor) : l })
    end

    def to_s
      body = lines.map { |l| l.is_a?(Ingredient) ? "- #{l}" : l }
      ["= #{title} (serves #{servings})", *body].join("\n")
    end
  end
end

if $PROGRAM_NAME == __FILE__
  guests = nil
  OptionParser.new do |opts|
    opts.banner = "Usage: recipe_scaler --for GUESTS [FILE...]"
    opts.on("-f", "--for GUESTS", Integer, "number of people at the table") { |n| guests = n }
  end.parse!
  abort "How many guests? See --help." unless guests&.positive?

  begin
    puts Recipes::Recipe.parse(ARGF).for(guests)
  rescue ArgumentError, Errno::ENOENT => e
    abort "recipe_scaler: #{e.message}"
  end
end
