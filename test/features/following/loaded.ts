/* The modules that this feature loads while it runs (support/harness/load-features.ts). */
import '../../../src/features/following/daemon/follow-upstream.ts';
import '../../../src/features/following/service/chain-store.ts';
import '../../../src/features/following/service/server.ts';
import '../../../src/features/following/service/use-cases.ts';
import '../../../src/features/following/service/waiting.ts';
import '../../../src/features/following/sync/follow.ts';
import '../../../src/features/following/upstream/sync-wire.ts';
