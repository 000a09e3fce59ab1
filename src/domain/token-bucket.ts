/** How often something may happen: `burst` times at once, `perSecond` times a second in the long run. */
export type Rate = { perSecond: number; burst: number };

/** `left`: the remaining tokens at the instant `at` (ms); below 0 the bucket is in debt. */
export type Bucket = { left: number; at: number };

/** The bucket refilled up to `now`. A new bucket is full. */
export function bucketAt(bucket: Bucket | undefined, { perSecond, burst }: Rate, now: number): Bucket {
  if (bucket === undefined) return { left: burst, at: now };
  const gained = (Math.max(0, now - bucket.at) / 1000) * perSecond;
  return { left: Math.min(burst, bucket.left + gained), at: now };
}

/** Takes tokens out, even if the bucket does not have them. */
export function spend({ left, at }: Bucket, count: number = 1): Bucket {
  return { left: left - count, at };
}

/** Puts tokens back. */
export function giveBack({ left, at }: Bucket, { burst }: Rate, count: number): Bucket {
  return { left: Math.min(burst, left + count), at };
}

/** The time until the bucket has a token, in ms. */
export function waitOf({ left }: Bucket, { perSecond }: Rate): number {
  return left >= 1 ? 0 : Math.ceil(((1 - left) / perSecond) * 1000);
}
