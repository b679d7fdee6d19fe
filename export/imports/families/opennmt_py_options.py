"""Options of OpenNMT-py that say how a model was trained, or what only other networks have.

Of the parsers of versions 1.2, 2.3 and 3.5: whatever is in none of them is a fault (see `opennmt_py`).
"""

_WORDS = """
    accum_count accum_steps adagrad_accumulator_init adam_beta1 adam_beta2 add_ffnbias add_qkvbias align_debug
    alignment_heads alignment_layer apex_opt_level attention_dropout attn_debug audio_enc_pooling average_decay
    average_every avg_tok_max avg_tok_min batch_size batch_size_multiple batch_type bidir_edges both_embeddings
    bridge bridge_extra_node brnn bucket_size bucket_size_increment bucket_size_init cnn_kernel_width config
    context_gate copy_attn_force copy_attn_type copy_loss_by_seqlength data data_ids data_to_noise data_type
    data_weights dec_hid_size dec_rnn_size decay_method decay_steps decoder_start_token default_specials doc_length
    dropout dropout_steps dump_beam dump_fields dump_preds dump_samples dump_transforms dynamic_dict early_stopping
    early_stopping_criteria embeddings_type enc_hid_size enc_rnn_size epochs exp exp_host feat_merge
    feat_vec_exponent feat_vec_size features_vocabs_prefix filter_valid fix_word_vecs_dec fix_word_vecs_enc
    freeze_decoder freeze_encoder freeze_word_vecs_dec freeze_word_vecs_enc full_context_alignment
    fuzzy_corpus_ratio fuzzy_threshold fuzzy_token fuzzymatch_max_length fuzzymatch_min_length global_attention
    global_attention_function gpt2_pretok gpu_backend gpu_ranks gpu_verbose_level gpuid group_size hidden_size
    image_channel_size input_feed insert_ratio isolated_tag keep_checkpoint label_smoothing lambda_align
    lambda_coverage lambda_prior_lambda lambda_prior_tau langid layers learn_subwords learn_subwords_size
    learning_rate learning_rate_decay lm_prior_lambda lm_prior_model lm_prior_tau log_file log_file_level
    lora_alpha lora_dropout lora_rank loss_scale lower mask_length mask_ratio master_ip master_port max_context
    max_generator_batches max_grad_norm max_shard_size max_tags model_dtype n_best n_edge_types n_node n_sample
    n_steps norm_numbers norm_quote_commas normalization num_experts_per_tok num_threads num_workers optim
    override_opts overwrite paired_etag paired_stag parallel_mode param_init param_init_glorot penn
    permute_sent_ratio poisson_lambda pool_factor position_encoding_type post_remove_control_chars
    pre_replace_unicode_punct pre_word_vecs_dec pre_word_vecs_enc prefetch_factor prior_tokenization quant_type
    queue_size random_ratio replace_length report_every reset_optim residual response_patterns reuse_copy_attn
    reversible_tokenization rnn_size rnn_type rotary_dim rotary_interleave rotary_theta rotate_ratio same_char
    same_word sample_rate save_checkpoint_steps save_config save_data save_format save_model scoring_debug
    scripts_nok scripts_ok seed shard_size share_vocab shuffle single_pass skip_empty_level src_delimiter src_dir
    src_embeddings src_eq_tgt src_feats_defaults src_feats_vocab src_ggnn_size src_lang src_noise src_noise_prob
    src_onmttok_kwargs src_prefix src_seq_length src_seq_length_trunc src_spacy_language_model src_subword_alpha
    src_subword_nbest src_subword_type src_subword_vocab src_suffix src_term_stoken src_tgt_ratio src_vocab
    src_vocab_size src_vocab_threshold src_word_vec_size src_words_min_frequency start_decay_steps state_dim
    subword_prefix subword_prefix_is_joiner switchout_temperature tags_corpus_ratio tags_dictionary_path
    tensorboard tensorboard_log_dir term_corpus_ratio term_example_ratio term_source_delimiter termbase_path
    tgt_embeddings tgt_lang tgt_onmttok_kwargs tgt_prefix tgt_seq_length tgt_seq_length_trunc
    tgt_spacy_language_model tgt_subword_alpha tgt_subword_nbest tgt_subword_type tgt_subword_vocab tgt_suffix
    tgt_term_etoken tgt_term_stoken tgt_vocab tgt_vocab_size tgt_vocab_threshold tgt_word_vec_size
    tgt_words_min_frequency timeout tm_delimiter tm_path tokendrop_temperature tokenmask_temperature train_align
    train_eval_steps train_from train_ids train_metrics train_src train_steps train_tgt transformer_ff
    truncated_decoder update_vocab upper_corpus_ratio use_ckpting valid_align valid_batch_size valid_metrics
    valid_src valid_steps valid_tgt verbose vocab_sample_queue_size vocab_size_multiple w_bit warmup_steps window
    window_size window_stride with_score word_vec_size world_size zero_out_prompt_loss
"""
HARMLESS = frozenset(_WORDS.split())
