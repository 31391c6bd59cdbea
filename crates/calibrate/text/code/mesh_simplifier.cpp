// Edge-collapse simplification with quadric error metrics.
//
// Every vertex carries a symmetric 4x4 matrix that sums the squared distances
// to the planes of the faces around it. Collapsing an edge costs the summed
// quadric evaluated at the merged position; cheapest edges go first. Boundary
// edges receive an additional steep plane perpendicular to their face, which
// keeps open meshes from shrinking like wool in a hot wash.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <queue>
#include <unordered_map>
#include <vector>

namespace terrain {

struct Vec3 {
    double x = 0, y = 0, z = 0;

    Vec3 operator+(const Vec3& o) const { return {x + o.x, y + o.y, z + o.z}; }
    Vec3 operator-(const Vec3& o) const { return {x - o.x, y - o.y, z - o.z}; }
    Vec3 operator*(double k) const { return {x * k, y * k, z * k}; }
};

inline double dot(const Vec3& a, const Vec3& b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

inline Vec3 cross(const Vec3& a, const Vec3& b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

inline double norm(const Vec3& a) { return std::sqrt(dot(a, a)); }

/// Upper triangle of the symmetric matrix, row by row.
class Quadric {
public:
    Quadric() = default;

    static Quadric from_plane(const Vec3& n, double d, double weight) {
        Quadric q;
        q.m_ = {n.x * n.x, n.x * n.y, n.x * n.z, n.x * d,
                n.y * n.y, n.y * n.z, n.y * d,
                n.z * n.z, n.z * d,
                d * d};
        for (double& v : q.m_) v *= weight;
        return q;
    }

    Quadric& operator+=(const Quadric& o) {
        for (std::size_t i = 0; i < m_.size(); ++i) m_[i] += o.m_[i];
        return *this;
    }

    double evaluate(const Vec3& p) const {
        return m_[0] * p.x * p.x + 2 * m_[1] * p.x * p.y + 2 * m_[2] * p.x * p.z + 2 * m_[3] * p.x
             + m_[4] * p.y * p.y + 2 * m_[5] * p.y * p.z + 2 * m_[6] * p.y
             + m_[7] * p.z * p.z + 2 * m_[8] * p.z
             + m_[9];
    }

    /// Position of least error, by Cramer's rule; nothing when the surrounding
    /// planes are (nearly) parallel and the minimum is a line or a plane.
    std::optional<Vec3> minimum() const {
        const Vec3 c0{m_[0], m_[1], m_[2]};
        const Vec3 c1{m_[1], m_[4], m_[5]};
        const Vec3 c2{m_[2], m_[5], m_[7]};
        const Vec3 rhs{-m_[3], -m_[6], -m_[8]};
        const double det = dot(c0, cross(c1, c2));
        const double scale = norm(c0) * norm(c1) * norm(c2);
        if (std::abs(det) <= 1e-6 * scale || scale == 0) return std::nullopt;
        return Vec3{dot(rhs, cross(c1, c2)), dot(c0, cross(rhs, c2)), dot(c0, cross(c1, rhs))} * (1.0 / det);
    }

private:
    std::array<double, 10> m_{};
};

using Index = std::uint32_t;
using Triangle = std::array<Index, 3>;

struct Mesh {
    std::vector<Vec3> vertices;
    std::vector<Triangle> triangles;
};

class Simplifier {
public:
    explicit Simplifier(const Mesh& mesh)
        : position_(mesh.vertices), face_(mesh.triangles), face_alive_(mesh.triangles.size(), true),
          live_faces_(mesh.triangles.size()), quadric_(mesh.vertices.size()), stamp_(mesh.vertices.size(), 0),
          fan_(mesh.vertices.size()) {
        for (Index f = 0; f < face_.size(); ++f)
            for (Index v : face_[f]) fan_[v].push_back(f);
        accumulate_quadrics();
    }

    /// Collapses edges until `target` faces remain or the next collapse would
    /// cost more than `max_error`. Returns the number of faces left.
    std::size_t run(std::size_t target, double max_error) {
        enqueue_all();
        while (live_faces_ > target && !queue_.empty()) {
            const Candidate best = queue_.top();
            queue_.pop();
            // Lazy deletion: an entry is stale once either end has moved.
            if (best.stamp_a != stamp_[best.a] || best.stamp_b != stamp_[best.b]) continue;
            if (best.cost > max_error) break;
            if (!link_condition(best.a, best.b) || flips_any(best.a, best.b, best.target) ||
                flips_any(best.b, best.a, best.target))
                continue;
            collapse(best);
        }
        return live_faces_;
    }

    /// Packs the surviving faces and the vertices they use.
    Mesh extract() const {
        Mesh out;
        std::unordered_map<Index, Index> renumber;
        for (Index f = 0; f < face_.size(); ++f) {
            if (!face_alive_[f]) continue;
            Triangle t{};
            for (int k = 0; k < 3; ++k) {
                const auto [it, fresh] = renumber.try_emplace(face_[f][k], static_cast<Index>(out.vertices.size()));
                if (fresh) out.vertices.push_back(position_[face_[f][k]]);
                t[k] = it->second;
            }
            out.triangles.push_back(t);
        }
        return out;
    }

private:
    struct Candidate {
        double cost;
        Index a, b;
        std::uint32_t stamp_a, stamp_b;
        Vec3 target;
        bool operator<(const Candidate& o) const { return cost > o.cost; }  // min-heap
    };

    static constexpr double kBoundaryWeight = 1000.0;

    void accumulate_quadrics() {
        std::unordered_map<std::uint64_t, int> uses;
        const auto key = [](Index a, Index b) {
            return (std::uint64_t{std::min(a, b)} << 32) | std::max(a, b);
        };
        for (const Triangle& t : face_)
            for (int k = 0; k < 3; ++k) ++uses[key(t[k], t[(k + 1) % 3])];

        for (const Triangle& t : face_) {
            const Vec3 raw = cross(position_[t[1]] - position_[t[0]], position_[t[2]] - position_[t[0]]);
            const double twice_area = norm(raw);
            if (twice_area == 0) continue;  // a sliver has no opinion
            const Vec3 n = raw * (1.0 / twice_area);
            const Quadric q = Quadric::from_plane(n, -dot(n, position_[t[0]]), twice_area * 0.5);
            for (Index v : t) quadric_[v] += q;

            for (int k = 0; k < 3; ++k) {
                const Index a = t[k], b = t[(k + 1) % 3];
                if (uses[key(a, b)] != 1) continue;
                const Vec3 along = position_[b] - position_[a];
                const Vec3 wall = cross(along, n);
                const double length = norm(wall);
                if (length == 0) continue;
                const Vec3 m = wall * (1.0 / length);
                const Quadric fence = Quadric::from_plane(m, -dot(m, position_[a]), kBoundaryWeight * dot(along, along));
                quadric_[a] += fence;
                quadric_[b] += fence;
            }
        }
    }

    std::vector<Index> neighbours(Index v) const {
        std::vector<Index> ring;
        for (Index f : fan_[v])
            if (face_alive_[f])
                for (Index w : face_[f])
                    if (w != v) ring.push_back(w);
        std::sort(ring.begin(), ring.end());
        ring.erase(std::unique(ring.begin(), ring.end()), ring.end());
        return ring;
    }

    void enqueue(Index a, Index b) {
        Quadric q = quadric_[a];
        q += quadric_[b];
        const Vec3 midpoint = (position_[a] + position_[b]) * 0.5;
        Vec3 target = midpoint;
        if (const auto ideal = q.minimum()) {
            target = *ideal;
        } else {
            for (const Vec3& p : {position_[a], position_[b]})
                if (q.evaluate(p) < q.evaluate(target)) target = p;
        }
        // Rounding can push a perfect fit slightly below zero.
        const double cost = std::max(0.0, q.evaluate(target));
        queue_.push({cost, a, b, stamp_[a], stamp_[b], target});
    }

    void enqueue_all() {
        for (Index v = 0; v < position_.size(); ++v)
            for (Index w : neighbours(v))
                if (v < w) enqueue(v, w);
    }

    /// The two ends may share only the vertices opposite the edge, otherwise
    /// the collapse would pinch the surface into a non-manifold crease.
    bool link_condition(Index a, Index b) const {
        const auto ra = neighbours(a), rb = neighbours(b);
        std::vector<Index> common;
        std::set_intersection(ra.begin(), ra.end(), rb.begin(), rb.end(), std::back_inserter(common));
        std::size_t shared_faces = 0;
        for (Index f : fan_[a])
            if (face_alive_[f] && contains(face_[f], b)) ++shared_faces;
        return shared_faces > 0 && common.size() == shared_faces;
    }

    bool flips_any(Index moved, Index other, const Vec3& target) const {
        for (Index f : fan_[moved]) {
            if (!face_alive_[f] || contains(face_[f], other)) continue;
            Triangle t = face_[f];
            while (t[0] != moved) std::rotate(t.begin(), t.begin() + 1, t.end());
            const Vec3 edge = position_[t[2]] - position_[t[1]];
            const Vec3 before = cross(edge, position_[moved] - position_[t[1]]);
            const Vec3 after = cross(edge, target - position_[t[1]]);
            if (dot(before, after) <= 0.2 * norm(before) * norm(after)) return true;
        }
        return false;
    }

    static bool contains(const Triangle& t, Index v) { return t[0] == v || t[1] == v || t[2] == v; }

    void collapse(const Candidate& c) {
        for (Index f : fan_[c.b]) {
            if (!face_alive_[f]) continue;
            if (contains(face_[f], c.a)) {
                face_alive_[f] = false;
                --live_faces_;
            } else {
                std::replace(face_[f].begin(), face_[f].end(), c.b, c.a);
                fan_[c.a].push_back(f);
            }
        }
        fan_[c.b].clear();
        std::erase_if(fan_[c.a], [this](Index f) { return !face_alive_[f]; });

        position_[c.a] = c.target;
        quadric_[c.a] += quadric_[c.b];
        ++stamp_[c.a];
        ++stamp_[c.b];
        for (Index w : neighbours(c.a)) enqueue(std::min(c.a, w), std::max(c.a, w));
    }

    std::vector<Vec3> position_;
    std::vector<Triangle> face_;
    std::vector<bool> face_alive_;
    std::size_t live_faces_;
    std::vector<Quadric> quadric_;
    std::vector<std::uint32_t> stamp_;
    std::vector<std::vector<Index>> fan_;
    std::priority_queue<Candidate> queue_;
};

}  // namespace terrain
