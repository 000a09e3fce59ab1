/* The modules that this feature loads while it runs (support/harness/load-features.ts). */
import '../../../src/features/following/daemon/follow-upstream.ts';
import '../../../src/features/following/service/chain.ts';
import '../../../src/features/following/service/change-feed.ts';
import '../../../src/features/following/service/use-cases.ts';
import '../../../src/features/following/service/waiting.ts';
import '../../../src/features/following/sync/follow.ts';
import '../../../src/features/following/upstream/feed-wire.ts';
