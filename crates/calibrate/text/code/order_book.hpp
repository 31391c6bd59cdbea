#pragma once

/**
 * @file order_book.hpp
 * @brief Price-time priority matching for a single instrument.
 *
 * Prices are integers in ticks. Resting orders live in an object pool and are
 * threaded onto intrusive FIFO queues, one queue per price level, so that
 * cancelling by identifier is O(1) once the level is known and no allocation
 * takes place on the hot path after warm-up.
 *
 * Not thread-safe by design: the gateway serialises commands before they
 * arrive here, and determinism is worth more to us than parallelism.
 */

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace exchange {

enum class Side : std::uint8_t { Buy, Sell };
enum class TimeInForce : std::uint8_t { GoodTillCancel, ImmediateOrCancel, FillOrKill, PostOnly };

using OrderId = std::uint64_t;
using Ticks = std::int64_t;
using Lots = std::uint32_t;

struct Trade {
    OrderId maker;
    OrderId taker;
    Ticks price;
    Lots quantity;
};

enum class Outcome { Filled, PartiallyFilled, Resting, Cancelled, Rejected };

struct Report {
    Outcome outcome;
    Lots executed = 0;
    Lots remaining = 0;
};

namespace detail {

struct Order {
    OrderId id{};
    Ticks price{};
    Lots open{};
    Side side{};
    Order* prev = nullptr;
    Order* next = nullptr;
};

/// Hands out stable addresses; blocks are kept until the pool itself dies.
class OrderPool {
public:
    Order* acquire() {
        if (free_ == nullptr) grow();
        Order* o = std::exchange(free_, free_->next);
        *o = Order{};
        return o;
    }

    void release(Order* o) noexcept {
        o->next = free_;
        free_ = o;
    }

private:
    static constexpr std::size_t kBlock = 1024;

    void grow() {
        auto& block = blocks_.emplace_back(kBlock);
        for (Order& o : block) release(&o);
    }

    std::vector<std::vector<Order>> blocks_;
    Order* free_ = nullptr;
};

/// FIFO of the orders at one price, with a running total for market data.
class Level {
public:
    bool empty() const noexcept { return head_ == nullptr; }
    Order* front() const noexcept { return head_; }
    std::uint64_t volume() const noexcept { return volume_; }

    void push_back(Order* o) noexcept {
        o->prev = tail_;
        o->next = nullptr;
        (tail_ ? tail_->next : head_) = o;
        tail_ = o;
        volume_ += o->open;
    }

    void unlink(Order* o) noexcept {
        (o->prev ? o->prev->next : head_) = o->next;
        (o->next ? o->next->prev : tail_) = o->prev;
        volume_ -= o->open;
    }

    void reduce(Order* o, Lots by) noexcept {
        assert(by <= o->open);
        o->open -= by;
        volume_ -= by;
    }

private:
    Order* head_ = nullptr;
    Order* tail_ = nullptr;
    std::uint64_t volume_ = 0;
};

}  // namespace detail

class OrderBook {
    using Bids = std::map<Ticks, detail::Level, std::greater<>>;
    using Asks = std::map<Ticks, detail::Level, std::less<>>;

public:
    using TradeSink = std::function<void(const Trade&)>;

    explicit OrderBook(TradeSink sink) : sink_(std::move(sink)) {
        if (!sink_) throw std::invalid_argument("order book needs somewhere to send its trades");
    }

    OrderBook(const OrderBook&) = delete;
    OrderBook& operator=(const OrderBook&) = delete;

    Report submit(OrderId id, Side side, Ticks price, Lots quantity, TimeInForce tif) {
        if (quantity == 0 || index_.contains(id)) return {Outcome::Rejected, 0, quantity};
        return side == Side::Buy ? place(asks_, bids_, id, side, price, quantity, tif)
                                 : place(bids_, asks_, id, side, price, quantity, tif);
    }

    /// Returns the quantity that was still open, or zero if the order is unknown.
    Lots cancel(OrderId id) {
        const auto it = index_.find(id);
        if (it == index_.end()) return 0;
        detail::Order* o = it->second;
        const Lots open = o->open;
        if (o->side == Side::Buy) remove(bids_, o);
        else remove(asks_, o);
        return open;
    }

    /// Shrinking keeps queue position; anything else must be cancel plus submit.
    bool reduce(OrderId id, Lots new_quantity) {
        const auto it = index_.find(id);
        if (it == index_.end()) return false;
        detail::Order* o = it->second;
        if (new_quantity >= o->open) return false;
        if (new_quantity == 0) return cancel(id) > 0;
        auto& level = o->side == Side::Buy ? bids_.at(o->price) : asks_.at(o->price);
        level.reduce(o, o->open - new_quantity);
        return true;
    }

    /// Visits up to @p depth levels from the best price outward.
    template <typename Visitor>
    void visit(Side side, std::size_t depth, Visitor&& visitor) const {
        const auto walk = [&](const auto& levels) {
            for (const auto& [price, level] : levels) {
                if (depth-- == 0) break;
                visitor(price, level.volume());
            }
        };
        if (side == Side::Buy) walk(bids_);
        else walk(asks_);
    }

private:
    template <typename Opposite, typename Own>
    Report place(Opposite& opposite, Own& own, OrderId id, Side side, Ticks price, Lots quantity, TimeInForce tif) {
        // The opposite side's comparator orders prices best first, so a level
        // is acceptable exactly when our limit does not sort before it.
        const auto acceptable = [&](Ticks level) { return !opposite.key_comp()(price, level); };

        if (tif == TimeInForce::PostOnly && !opposite.empty() && acceptable(opposite.begin()->first))
            return {Outcome::Rejected, 0, quantity};

        if (tif == TimeInForce::FillOrKill) {
            std::uint64_t available = 0;
            for (auto it = opposite.begin(); it != opposite.end() && acceptable(it->first) && available < quantity; ++it)
                available += it->second.volume();
            if (available < quantity) return {Outcome::Cancelled, 0, quantity};
        }

        Lots remaining = quantity;
        while (remaining > 0 && !opposite.empty() && acceptable(opposite.begin()->first)) {
            auto& [level_price, level] = *opposite.begin();
            detail::Order* maker = level.front();
            const Lots traded = std::min(remaining, maker->open);
            level.reduce(maker, traded);
            remaining -= traded;
            sink_({maker->id, id, level_price, traded});  // maker's price, always
            if (maker->open == 0) remove(opposite, maker);
        }

        const Lots executed = quantity - remaining;
        if (remaining == 0) return {Outcome::Filled, executed, 0};
        if (tif == TimeInForce::ImmediateOrCancel) return {Outcome::Cancelled, executed, remaining};

        detail::Order* resting = pool_.acquire();
        resting->id = id;
        resting->price = price;
        resting->open = remaining;
        resting->side = side;
        own[price].push_back(resting);
        index_.emplace(id, resting);
        return {executed > 0 ? Outcome::PartiallyFilled : Outcome::Resting, executed, remaining};
    }

    template <typename Levels>
    void remove(Levels& levels, detail::Order* o) {
        const auto it = levels.find(o->price);
        assert(it != levels.end());
        it->second.unlink(o);
        if (it->second.empty()) levels.erase(it);
        index_.erase(o->id);
        pool_.release(o);
    }

    Bids bids_;
    Asks asks_;
    std::unordered_map<OrderId, detail::Order*> index_;
    detail::OrderPool pool_;
    TradeSink sink_;
};

}  // namespace exchange
