/** How many changes of all licenses one read of a follower looks through. A longer read would delay others. */
export const changesPerRead = 500;
