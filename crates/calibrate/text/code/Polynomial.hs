{-# LANGUAGE DerivingStrategies #-}
{-# LANGUAGE ScopedTypeVariables #-}

-- |
-- Module      : Polynomial
-- Description : Univariate polynomials over a field, with Sturm's theorem
--
-- Coefficients are stored from the constant term upwards and never end in a
-- zero, so structural equality coincides with mathematical equality. That
-- invariant is guarded by the smart constructor 'fromCoefficients'; the raw
-- constructor is not exported.
module Polynomial
  ( Poly
  , fromCoefficients
  , coefficients
  , degree
  , eval
  , derivative
  , divModP
  , gcdP
  , squareFree
  , sturmChain
  , countRoots
  , isolateRoots
  , pretty
  ) where

import Data.List (dropWhileEnd, foldl', intercalate, unfoldr)
import Data.Ratio (denominator, numerator)

newtype Poly a = Poly [a]
  deriving stock (Eq, Show)

fromCoefficients :: (Eq a, Num a) => [a] -> Poly a
fromCoefficients = Poly . dropWhileEnd (== 0)

coefficients :: Poly a -> [a]
coefficients (Poly cs) = cs

-- | The zero polynomial has no degree, which callers are forced to notice.
degree :: Poly a -> Maybe Int
degree (Poly []) = Nothing
degree (Poly cs) = Just (length cs - 1)

leading :: Num a => Poly a -> a
leading (Poly []) = 0
leading (Poly cs) = last cs

instance (Eq a, Num a) => Num (Poly a) where
  Poly as + Poly bs = fromCoefficients (zipLong as bs)
    where
      zipLong (x : xs) (y : ys) = x + y : zipLong xs ys
      zipLong xs [] = xs
      zipLong [] ys = ys
  Poly as * Poly bs = sum' [shift i (map (a *) bs) | (i, a) <- zip [0 ..] as]
    where
      shift i cs = fromCoefficients (replicate i 0 ++ cs)
      sum' = foldl' (+) (Poly [])
  negate (Poly as) = Poly (map negate as)
  fromInteger n = fromCoefficients [fromInteger n]
  abs = error "Polynomial.abs: not meaningful"
  signum = error "Polynomial.signum: not meaningful"

-- | Horner's scheme.
eval :: Num a => Poly a -> a -> a
eval (Poly cs) x = foldr (\c acc -> c + x * acc) 0 cs

derivative :: (Eq a, Num a) => Poly a -> Poly a
derivative (Poly []) = Poly []
derivative (Poly (_ : cs)) = fromCoefficients (zipWith (*) (map fromInteger [1 ..]) cs)

-- | Division with remainder: @p == q * d + r@ where @r@ is zero or of lower
-- degree than @d@. Dividing by zero is an error, as it is for numbers.
divModP :: (Eq a, Fractional a) => Poly a -> Poly a -> (Poly a, Poly a)
divModP p d = case degree d of
  Nothing -> error "Polynomial.divModP: division by zero"
  Just n -> go (Poly []) p
    where
      go q r = case degree r of
        Just m | m >= n ->
          let term = fromCoefficients (replicate (m - n) 0 ++ [leading r / leading d])
           in go (q + term) (r - term * d)
        _ -> (q, r)

-- | Monic greatest common divisor.
gcdP :: (Eq a, Fractional a) => Poly a -> Poly a -> Poly a
gcdP a (Poly []) = monic a
gcdP a b = gcdP b (snd (divModP a b))

monic :: (Eq a, Fractional a) => Poly a -> Poly a
monic p = fromCoefficients (map (/ leading p) (coefficients p))

squareFree :: (Eq a, Fractional a) => Poly a -> Poly a
squareFree p = fst (divModP p (gcdP p (derivative p)))

-- | @p@, its derivative, and then negated remainders until nothing is left.
sturmChain :: (Eq a, Fractional a) => Poly a -> [Poly a]
sturmChain p = unfoldr step (p, derivative p)
  where
    step (Poly [], _) = Nothing
    step (a, Poly []) = Just (a, (Poly [], Poly []))
    step (a, b) = Just (a, (b, negate (snd (divModP a b))))

-- | Number of distinct real roots in the half-open interval @(lo, hi]@.
countRoots :: (Ord a, Fractional a) => [Poly a] -> a -> a -> Int
countRoots chain lo hi = variations lo - variations hi
  where
    variations x =
      let signs = filter (/= 0) (map (signum . (`eval` x)) chain)
       in length (filter id (zipWith (/=) signs (drop 1 signs)))

-- | Intervals no wider than @eps@, each enclosing exactly one root.
isolateRoots :: forall a. (Ord a, Fractional a) => a -> Poly a -> [(a, a)]
isolateRoots eps p
  | maybe True (< 1) (degree p) = []
  | otherwise = search (-bound) bound
  where
    q = squareFree p
    chain = sturmChain q
    -- Cauchy's bound: every root is smaller than this in absolute value.
    bound = 1 + maximum (map (abs . (/ leading q)) (coefficients q))
    search :: a -> a -> [(a, a)]
    search lo hi = case countRoots chain lo hi of
      0 -> []
      1 | hi - lo <= eps -> [(lo, hi)]
      _ -> let mid = (lo + hi) / 2 in search lo mid ++ search mid hi

-- | Highest power first, the way it is written on a blackboard.
pretty :: Poly Rational -> String
pretty (Poly []) = "0"
pretty (Poly cs) = intercalate " + " [term c i | (c, i) <- reverse (zip cs [0 :: Int ..]), c /= 0]
  where
    term c 0 = number c
    term 1 i = power i
    term c i = number c ++ power i
    power 1 = "x"
    power i = "x^" ++ show i
    number c
      | denominator c == 1, c >= 0 = show (numerator c)
      | denominator c == 1 = "(" ++ show (numerator c) ++ ")"
      | otherwise = "(" ++ show (numerator c) ++ "/" ++ show (denominator c) ++ ")"
