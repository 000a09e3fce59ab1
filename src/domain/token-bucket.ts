/** How often something may happen: `burst` times at once, `perSecond` times a second in the long run. */
export type Rate = { perSecond: number; burst: number };

/** What is left of a rate at an instant, in ms; below 0 it is in debt. */
export type Bucket = { left: number; at: number };

/** The bucket at `now`, fuller by what has flowed in since; one that was never used is full. */
export function bucketAt(bucket: Bucket | undefined, { perSecond, burst }: Rate, now: number): Bucket {
  if (bucket === undefined) return { left: burst, at: now };
  const gained = (Math.max(0, now - bucket.at) / 1000) * perSecond;
  return { left: Math.min(burst, bucket.left + gained), at: now };
}

/** The bucket with so many taken out, whether they were there or not. */
export function spend({ left, at }: Bucket, count: number = 1): Bucket {
  return { left: left - count, at };
}

/** The bucket with so many put back that were taken out of it. */
export function giveBack({ left, at }: Bucket, { burst }: Rate, count: number): Bucket {
  return { left: Math.min(burst, left + count), at };
}

/** How long until one more may be taken out, in ms; 0: at once. */
export function waitOf({ left }: Bucket, { perSecond }: Rate): number {
  return left >= 1 ? 0 : Math.ceil(((1 - left) / perSecond) * 1000);
}
